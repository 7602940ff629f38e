"""Rate limits in memory, of a few keys, hit and read by four threads."""

from contextlib import suppress

from in_threads import in_threads
from limits import RateLimitItemPerSecond, storage, strategies

store = storage.MemoryStorage()
limiters = [each(store) for each in (strategies.FixedWindowRateLimiter, strategies.MovingWindowRateLimiter,
                                     strategies.SlidingWindowCounterRateLimiter)]
limit = RateLimitItemPerSecond(1000)


def work(thread, turn):
    with suppress(KeyError):     # one of the races
        for limiter in limiters:
            limiter.hit(limit, f"user {turn % 3}")
            limiter.get_window_stats(limit, f"user {turn % 3}")
        if turn % 20 == thread:
            limiters[0].clear(limit, f"user {turn % 3}")


in_threads(work)
