"""Executors, futures, pools of multiprocessing and asyncio."""

import asyncio
import concurrent.futures
import io
import logging
import multiprocessing.dummy
import multiprocessing.pool
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gilscope.toolkit.race import sync
from tests.patience import PATIENCE, wait_until
from tests.race.fakes.core import FakeCore
from tests.race.sync.layer import Unseen, level_in, run
from tests.race.sync.test_primitives import in_turn


@pytest.fixture
def pool(core):
    with ThreadPoolExecutor(2) as executor:
        yield executor


def meet(count=2):
    """Return a function that returns once `count` threads are in it: so that tasks run in workers of their own."""
    arrived, go = [], Unseen()

    def wait():
        arrived.append(None)
        if len(arrived) == count:
            go.set(count)
        go.wait()
    return wait


# -- executor ------------------------------------------------------------------------------------------------------


def test_submit_orders_its_task_and_the_result_orders_the_rest(core, pool):
    core.write("x")
    pool.submit(core.write, "x").result(PATIENCE)
    core.write("x")
    assert not core.raced


def test_what_follows_submit_is_unordered(core, pool, unseen):
    future = pool.submit(lambda: (unseen.wait(), core.write("x")))
    core.write("x")
    unseen.set()
    future.result(PATIENCE)
    assert core.raced == {"x"}


def test_finished_task_is_not_ordered_before_one_of_another_worker(core, pool, unseen):
    both = meet()
    first = pool.submit(lambda: (both(), core.write("x"), unseen.set()))
    second = pool.submit(lambda: (both(), unseen.wait(), core.write("x")))
    concurrent.futures.wait([first, second], PATIENCE)
    assert core.raced == {"x"}


def test_idle_worker_that_takes_a_task_is_not_ordered_after_a_finished_one(core, pool, unseen):
    both, hold, held = meet(), Unseen(), Unseen()
    first = pool.submit(lambda: (both(), core.write("x"), threading.get_ident())[-1])
    second = pool.submit(lambda: (both(), unseen.wait()))
    third = pool.submit(lambda: (held.set(), hold.wait(), threading.get_ident())[-1])
    held.wait()     # in the worker of `first`: the other one waits
    unseen.set()
    second.result(PATIENCE)
    fourth = pool.submit(lambda: core.write("x"))
    fourth.result(PATIENCE)
    hold.set()
    assert third.result(PATIENCE) == first.result(PATIENCE)
    assert core.raced == {"x"}
    hold.close()
    held.close()


@pytest.mark.parametrize("see", [
    lambda future: future.result(PATIENCE),
    lambda future: future.exception(PATIENCE),
    lambda future: [None for _ in iter(lambda: bool(future.done()), True)],  # noqa: FBT003  iter's sentinel
    lambda future: concurrent.futures.wait([future], PATIENCE),
    lambda future: concurrent.futures.wait((f for f in [future]), PATIENCE),
    lambda future: list(concurrent.futures.as_completed([future], PATIENCE)),
], ids=["result", "exception", "done", "wait", "wait of a generator", "as_completed"])
def test_seeing_a_future_done_orders(core, pool, see):
    see(pool.submit(core.write, "x"))
    core.write("x")
    assert not core.raced


def test_exception_of_a_task_orders(core, pool):
    def fail():
        core.write("x")
        raise LookupError

    future = pool.submit(fail)
    with pytest.raises(LookupError):
        future.result(PATIENCE)
    core.write("x")
    assert not core.raced


def test_result_that_does_not_come_in_time_orders_nothing(core, pool, unseen):
    written = Unseen()
    future = pool.submit(lambda: (core.write("x"), written.set(), unseen.wait()))
    written.wait()
    with pytest.raises(TimeoutError):
        future.result(0.001)
    assert not future.done()
    assert future.running()
    core.write("x")
    unseen.set()
    written.close()
    assert core.raced == {"x"}


def test_as_completed_orders_after_what_it_yields_alone(core, pool, unseen):
    both = meet()
    first = pool.submit(both)
    second = pool.submit(lambda: (both(), core.write("x")))
    concurrent.futures.Future.done.__wrapped__      # noqa: B018  it is ours
    while second._state != "FINISHED" or first._state != "FINISHED":
        pass
    seen = next(iter(concurrent.futures.as_completed([first])))
    assert seen is first
    core.write("x")
    assert core.raced == {"x"}


def test_as_completed_keeps_no_future_it_has_yielded(core, pool):
    import weakref
    futures = [pool.submit(int, 1), pool.submit(int, 2)]
    gone = []
    for future in concurrent.futures.as_completed(futures, PATIENCE):
        futures.remove(future)
        gone.append(weakref.ref(future))
        del future
    pool.shutdown()     # a worker forgets a future after it has set the result
    import gc
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_map_orders_each_result(core, pool):
    core.write("x")
    names = list(pool.map(lambda name: core.write(name) or name, ["a", "b", "x"]))
    for name in names:
        core.write(name)
    assert not core.raced


def test_tasks_that_one_worker_happens_to_run_are_unordered(core, pool):
    future = pool.submit(core.write, "x")
    while future._state != "FINISHED" or not pool._idle_semaphore._value:     # unseen by any primitive
        pass
    pool.submit(core.write, "x").result(PATIENCE)
    assert len(pool._threads) == 1
    assert core.raced == {"x"}


def test_tasks_of_the_only_worker_are_in_order(core):
    core.write("x")
    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            pool.submit(core.write, "x")
    assert not core.raced


def test_many_tasks_cost_the_core_no_thread_each(fake, pool):
    for _ in range(100):
        pool.submit(int)
    pool.shutdown()
    assert fake.thread_uid() < next(fake.uids) < 50


def test_later_tasks_of_a_worker_are_ordered_by_submission_and_end_likewise(core):
    core.write("x")
    with ThreadPoolExecutor(2) as pool:
        one_after_the_other(pool, *[lambda: core.write("first")] * 30, lambda: core.write("x"))
    core.write("x")
    core.write("first")
    assert core.raced == {"first"}


def test_worker_counts_as_the_librarys_code_between_tasks(fake):
    with ThreadPoolExecutor(2) as pool:
        one_after_the_other(pool, int)
        (worker,) = pool._threads
        assert wait_until(lambda: fake.threads[worker.ident].level == 1)   # the result is there before the task's end


def test_short_tasks_leave_some_for_other_workers(monkeypatch):
    pauses = []
    monkeypatch.setattr("gilscope.toolkit.race.sync.layer.sleep", lambda seconds: pauses.append(threading.get_ident()))
    undo = sync.install(FakeCore(), overlap=0.5)
    try:
        with ThreadPoolExecutor(2) as pool:
            one_after_the_other(pool, *[threading.get_ident] * 10)
            worker = next(iter(pool._threads)).ident
    finally:
        undo()
    assert pauses == [worker] * 3


def test_initializer_of_each_worker_comes_before_its_first_task(core):
    local, both = threading.local(), meet()

    def initialize():
        local.name = object()
        core.write(local.name)

    with ThreadPoolExecutor(2, initializer=initialize) as pool:
        for _ in range(2):
            pool.submit(lambda: (both(), core.write(local.name)))
    assert not core.raced


def test_context_variables_tie_tasks_to_their_worker(core, pool):
    import contextvars
    variable = contextvars.ContextVar("variable", default=None)
    one_after_the_other(pool, lambda: core.write("x"), lambda: (variable.get(), core.write("x")))
    assert not core.raced


@pytest.mark.parametrize("ask", [threading.get_ident, threading.current_thread, threading.get_native_id],
                         ids=lambda ask: ask.__name__)
def test_task_that_asks_for_its_thread_comes_after_earlier_ones_there(core, pool, ask):
    ask = getattr(threading, ask.__name__)
    future = pool.submit(core.write, "x")
    while future._state != "FINISHED" or not pool._idle_semaphore._value:
        pass
    pool.submit(lambda: (ask(), core.write("x"))).result(PATIENCE)
    assert not core.raced


def one_after_the_other(pool, *tasks):
    """Run tasks in one worker, ordered by nothing but that."""
    for task in tasks:
        future = pool.submit(task)
        while future._state != "FINISHED" or not pool._idle_semaphore._value:
            pass
    assert len(pool._threads) == 1


def test_task_that_looks_for_its_threads_own_comes_after_earlier_ones_there(core, pool):
    if isinstance(core, FakeCore):
        pytest.skip("only real cores look at thread-locals")
    local = threading.local()
    one_after_the_other(pool, lambda: core.write("x"), lambda: (core.read(local), core.write("x")))
    assert not core.raced


def test_library_that_asks_for_its_thread_orders_nothing(core, pool):
    if isinstance(core, FakeCore):
        pytest.skip("its own frames are not told from a program's")
    logger = logging.Logger("asks for thread and name")  # noqa: LOG001  known to nobody else
    logger.addHandler(logging.StreamHandler(io.StringIO()))
    one_after_the_other(pool, *[lambda: (logger.warning("line"), core.write("x"))] * 2)
    assert core.raced == {"x"}


def test_task_is_named_after_its_worker_and_placed_at_its_submission(core):
    with ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
        uid = pool.submit(core.thread_uid).result()
    name, places = sync.describe(uid)
    assert name == "task 1 of worker pool_0"
    assert (__file__, "test_task_is_named_after_its_worker_and_placed_at_its_submission") in [
        (path, function) for path, _, function in places]


def test_generator_of_futures_may_submit_within_wait(core, pool):
    core.write("x")
    concurrent.futures.wait((pool.submit(core.write, name) for name in ["x"]), PATIENCE)
    core.write("x")
    assert not core.raced


def test_shutdown_orders_after_all_tasks(core):
    with ThreadPoolExecutor(2) as pool:
        pool.submit(core.write, "a")
        pool.submit(core.write, "b")
    core.write("a")
    core.write("b")
    assert not core.raced


def test_initializer_comes_before_the_tasks_of_its_worker_and_is_the_programs_code(core):
    levels = []

    def initialize(name):
        core.write(name)
        levels.append(level_in(core))

    core.write("x")
    with ThreadPoolExecutor(1, initializer=initialize, initargs=("x",)) as pool:
        pool.submit(core.write, "x")
    assert not core.raced
    assert levels == [0]


def test_failing_initializer_breaks_the_pool_as_before(core, caplog):
    def fail():
        raise LookupError

    with ThreadPoolExecutor(1, initializer=fail) as pool, pytest.raises(concurrent.futures.BrokenExecutor):
        pool.submit(int).result(PATIENCE)
    assert "initializer" in caplog.text


def test_task_is_the_programs_code(core, pool):
    assert pool.submit(level_in, core).result(PATIENCE) == 0
    assert level_in(core) == 0


# -- future --------------------------------------------------------------------------------------------------------


def test_callbacks_come_after_what_made_the_future_done(core):
    future = concurrent.futures.Future()
    levels = []

    def callback(_future):
        levels.append(level_in(core))
        core.write("x")

    in_turn(lambda: (core.write("x"), future.set_result(1)), lambda: future.add_done_callback(callback))
    assert not core.raced
    other = concurrent.futures.Future()
    other.add_done_callback(callback)
    in_turn(lambda: (core.write("y"), other.set_exception(LookupError())))
    assert levels == [0, 0]


@pytest.mark.parametrize("look", [concurrent.futures.Future.done, concurrent.futures.Future.running, repr],
                         ids=["done", "running", "repr"])
def test_those_who_look_at_a_future_are_unordered(core, look):
    look = getattr(concurrent.futures.Future, look.__name__, look)
    future = concurrent.futures.Future()
    in_turn(lambda: (core.write("x"), look(future)), lambda: (look(future), core.write("x"), future.set_result(1)))
    assert core.raced == {"x"}


def test_those_who_wait_for_one_future_are_unordered(core):
    future = concurrent.futures.Future()
    future.set_result(1)
    in_turn(lambda: (core.write("x"), concurrent.futures.wait([future])),
            lambda: (concurrent.futures.wait([future]), core.write("x")))
    assert core.raced == {"x"}


def test_cancel_orders_who_sees_it(core):
    future = concurrent.futures.Future()

    def see():
        assert future.cancelled()
        core.write("x")
        with pytest.raises(concurrent.futures.CancelledError):
            future.result()

    in_turn(lambda: (core.write("x"), future.cancel()), see)
    assert not core.raced


def test_future_complains_as_before(core):
    future = concurrent.futures.Future()
    future.set_result(1)
    with pytest.raises(concurrent.futures.InvalidStateError):
        future.set_result(2)
    assert level_in(core) == 0


def test_functions_keep_their_names(core):
    assert concurrent.futures.wait.__name__ == "wait"
    assert concurrent.futures.Future.add_done_callback.__qualname__ == "Future.add_done_callback"


# -- multiprocessing.pool.ThreadPool --------------------------------------------------------------------------------


def test_thread_pool_orders_call_task_and_result(core):
    with multiprocessing.pool.ThreadPool(2) as pool:
        core.write("x")
        pool.apply(core.write, ("x",))
        core.write("x")
        for name in pool.map(lambda name: core.write(name) or name, ["a", "b"]):
            core.write(name)
        for name in pool.imap(lambda name: core.write(name) or name, ["c", "d"]):
            core.write(name)
        for name in pool.imap_unordered(lambda name: core.write(name) or name, ["e", "f"]):
            core.write(name)
        result = pool.apply_async(core.write, ("x",))
        result.wait(PATIENCE)
        assert result.ready()
        core.write("x")
    assert not core.raced


def test_tasks_of_a_thread_pool_are_unordered(core, unseen):
    both = meet()
    with multiprocessing.pool.ThreadPool(2) as pool:
        first = pool.apply_async(lambda: (both(), core.write("x"), unseen.set()))
        pool.apply(lambda: (both(), unseen.wait(), core.write("x")))
        first.get(PATIENCE)
    assert core.raced == {"x"}


def test_multiprocessing_dummy_is_threads(core):
    core.write("x")
    process = multiprocessing.dummy.Process(target=core.write, args=("x",))
    process.start()
    process.join()
    core.write("x")
    assert not core.raced


# -- asyncio -------------------------------------------------------------------------------------------------------


def test_call_soon_threadsafe_orders_the_callback(core):
    async def main():
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def hand_over():
            core.write("x")
            loop.call_soon_threadsafe(lambda: (core.write("x"), done.set()))

        thread = threading.Thread(target=hand_over)
        thread.start()
        await done.wait()
        core.write("x")
        thread.join()

    asyncio.run(main())
    assert not core.raced


def test_what_follows_call_soon_threadsafe_is_unordered(core, unseen):
    async def main():
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def hand_over():
            loop.call_soon_threadsafe(done.set)
            core.write("x")
            unseen.set()

        thread = threading.Thread(target=hand_over)
        thread.start()
        await done.wait()
        unseen.wait()
        core.write("x")
        thread.join()

    asyncio.run(main())
    assert core.raced == {"x"}


def test_to_thread_and_run_in_executor_order_both_ways(core):
    async def main():
        core.write("x")
        await asyncio.to_thread(core.write, "x")
        core.write("x")
        await asyncio.get_running_loop().run_in_executor(None, core.write, "x")
        core.write("x")

    asyncio.run(main())
    assert not core.raced


@pytest.mark.parametrize(("awaits_first", "raced"), [(False, {"x"}), (True, set())])
def test_a_task_that_was_done_when_the_loop_got_its_future(core, unseen, awaits_first, raced):
    """By luck: what the loop does before it awaits the task is unordered, what it does then is not."""
    go = Unseen()

    class Prompt(ThreadPoolExecutor):
        def submit(self, fn, /, *args):
            future = super().submit(fn, *args)
            future.add_done_callback(lambda _: unseen.set())     # in the worker: the task waits for `go`
            go.set()
            unseen.wait()
            return future

    async def main():
        with Prompt(1) as executor:
            task = asyncio.get_running_loop().run_in_executor(executor, lambda: (go.wait(), core.write("x"), 7)[-1])
            if awaits_first:
                assert await task == 7
            core.write("x")
            assert await task == 7

    asyncio.run(main())
    go.close()
    assert core.raced == raced


def test_two_tasks_in_threads_are_unordered(core, unseen):
    both = meet()

    async def main():
        await asyncio.gather(asyncio.to_thread(lambda: (both(), core.write("x"), unseen.set())),
                             asyncio.to_thread(lambda: (both(), unseen.wait(), core.write("x"))))

    asyncio.run(main())
    assert core.raced == {"x"}


def test_run_coroutine_threadsafe_orders_both_ways(core):
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def write():
        core.write("x")

    async def fail():
        core.write("x")
        raise LookupError

    core.write("x")
    asyncio.run_coroutine_threadsafe(write(), loop).result(PATIENCE)
    core.write("x")
    with pytest.raises(LookupError):
        asyncio.run_coroutine_threadsafe(fail(), loop).result(PATIENCE)
    core.write("x")
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    core.write("x")
    assert not core.raced


def test_callback_is_the_programs_code_and_holds_no_lock(fake):
    async def main():
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        levels = []

        def look():
            levels.append((level_in(fake), [lock for uid, lock in fake.held if uid == fake.thread_uid()]))
            done.set()

        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(look,))
        thread.start()
        await done.wait()
        thread.join()
        return levels

    assert asyncio.run(main()) == [(0, [])]


def test_run_helper_raises_what_threads_raise(core):
    with pytest.raises(LookupError):
        run(lambda: {}[1])
