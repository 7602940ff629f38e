"""The accounting of an open loop, which sends requests at scheduled times, whatever is answered.

Latencies count from the time a request was *scheduled*.  Counting from when it was sent would hide the requests that
the server's own slowness delayed ("coordinated omission"; Gil Tene, "How NOT to Measure Latency", 2013).  Callers send
and receive, and report each event to an `OpenLoopTally`.
"""

from __future__ import annotations

from array import array

from gilscope.toolkit.experiments.latency import LogHistogram, percentiles
from gilscope.toolkit.units import format_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LAG_SHARE = 0.1     # of the median latency, by which the generator may be late at its 99th percentile
SENT_SHARE = 0.98   # of the scheduled requests, which must have been sent
ENOUGH_FOR_P99 = 100   # requests: with fewer, the 99th percentile is the longest


def is_late(lag: float, median_latency: float) -> bool:
    """Return True if the generator was so late that latencies are its own as much as the server's.

    Args:
        lag: Seconds between a request's time and its sending, the 99th percentile.
        median_latency: Seconds.
    """
    return lag > LAG_SHARE * median_latency


def has_p99(counts: Iterable[float]) -> bool:
    """Return True if each process had enough of what it timed for a 99th percentile of its own.

    Args:
        counts: How many each process timed; of none nothing is known, and their percentiles are taken as they are.
    """
    return all(count >= ENOUGH_FOR_P99 for count in counts)


def schedule(rate: float, start: float) -> Iterator[float]:
    """Yield the times at which requests are due, `rate` a second from `start` on, without end."""
    index = 0
    while True:
        yield start + index / rate
        index += 1


class OpenLoopTally:
    """Counts the outcomes of one open loop's requests."""

    def __init__(self, rate: float) -> None:
        """`rate`: requests scheduled a second."""
        self.rate = rate
        self._latencies = array("d")   # seconds of every request sent; of an unanswered one, as long as it was awaited
        self._lags = array("d")        # seconds between a request's time and its sending
        self._unanswered = 0
        self._unsent = 0

    @property
    def answered(self) -> int:
        """The number of answered requests so far."""
        return len(self._latencies) - self._unanswered

    def sent(self, scheduled: float, now: float) -> None:
        """Count a request that is sent now."""
        self._lags.append(now - scheduled)

    def finished(self, scheduled: float, now: float) -> None:
        """Count an answer that is complete now."""
        self._latencies.append(now - scheduled)

    def gave_up(self, scheduled: float, now: float) -> None:
        """Count a request that was sent and not answered, with the time waited for it as its latency."""
        self.finished(scheduled, now)
        self._unanswered += 1

    def missed(self) -> None:
        """Count a request that was due and not sent, since too many were in flight."""
        self._unsent += 1

    def report(self) -> dict[str, float | str]:
        """Return the loop's numbers by the names of the metrics, times in seconds.

        If no request was sent, return only the counts.
        """
        counts: dict[str, float | str] = {
            "rate": self.rate, "sent": len(self._lags), "requests": self.answered, "unanswered": self._unanswered}
        if not self._latencies:
            return {**counts, "saturated": "no request was sent"}
        latency, lag = percentiles(self._latencies), percentiles(self._lags)
        return {
            **counts, "p50": latency.p50, "p90": latency.p90, "p99": latency.p99, "max": latency.max,
            "lag_p50": lag.p50, "lag_p99": lag.p99, "histogram": LogHistogram(self._latencies).encode(),
            "saturated": self._saturated(latency.p50, lag.p99),
        }

    def _saturated(self, median_latency: float, late: float) -> str:
        """Return why these latencies are the generator's as much as the server's, "" if they are not."""
        due = len(self._lags) + self._unsent
        if len(self._lags) < SENT_SHARE * due:
            return f"the load generator sent {len(self._lags)} of {due} requests: too many were unanswered"
        if is_late(late, median_latency):
            percentile = " (99th percentile)" if has_p99([len(self._lags)]) else ""
            return (f"the load generator itself was up to {format_seconds(late)} late{percentile}, beside a "
                    f"median latency of {format_seconds(median_latency)}")
        return ""
