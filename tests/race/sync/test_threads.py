"""Start, join and what else tells that a thread has begun or ended."""

import _thread
import sys
import threading

import pytest

from gilscope.toolkit.race import sync
from tests.patience import PATIENCE
from tests.race.sync.layer import installed, level_in, run


def described(uid):
    """Return what the layer says of a thread; a real core leaves no frame, or none outside of its folder."""
    name, places = sync.describe(uid)
    return name, [place for place in places if not place[0].endswith("fakes/core.py")]


def test_start_orders(core):
    core.write("x")
    run(lambda: core.write("x"))
    assert not core.raced


def test_after_start_nothing_is_ordered(core, unseen):
    thread = threading.Thread(target=lambda: (unseen.wait(), core.write("x")))
    thread.start()
    core.write("x")
    unseen.set()
    thread.join()
    assert core.raced == {"x"}


def test_join_orders(core):
    run(lambda: core.write("x"))
    core.write("x")
    assert not core.raced


def test_join_that_gave_up_orders_nothing(core, unseen):
    written = type(unseen)()
    thread = threading.Thread(target=lambda: (core.write("x"), written.set(), unseen.wait()))
    thread.start()
    written.wait()
    thread.join(0.001)
    core.write("x")
    unseen.set()
    thread.join()
    written.close()
    assert core.raced == {"x"}


def test_threads_that_pass_each_other_are_unordered(core, unseen):
    run(lambda: (core.write("x"), unseen.set()), lambda: (unseen.wait(), core.write("x")))
    assert core.raced == {"x"}


def test_end_of_one_thread_and_start_of_the_next_are_unordered(core, unseen):
    second_unseen = unseen
    first = threading.Thread(target=lambda: core.write("x"))
    first.start()
    while threading._active.get(first.ident) is first:      # as nobody should: no primitive is asked
        pass
    second = threading.Thread(target=lambda: (second_unseen.wait(), core.write("x")))
    second.start()
    unseen.set()
    second.join()
    first.join()
    assert core.raced == {"x"}


@pytest.mark.parametrize("ended", [
    lambda thread, _before: not thread.is_alive(),
    lambda thread, _before: thread not in threading.enumerate(),
    lambda _thread, before: threading.active_count() <= before,
], ids=["is_alive", "enumerate", "active_count"])
def test_seeing_the_end_orders(core, ended):
    for other in set(threading.enumerate()) - {threading.current_thread()}:
        # Of an earlier test: its end shall not be taken for that of ours.  A daemon may be there for good.
        other.join(1.0 if other.daemon else None)
    before = threading.active_count()
    thread = threading.Thread(target=lambda: core.write("x"))
    thread.start()
    while not ended(thread, before):
        pass
    core.write("x")
    assert not core.raced
    thread.join()


def test_being_alive_orders_nothing(core, unseen):
    thread = threading.Thread(target=lambda: (core.write("x"), reached.set(), unseen.wait()))
    reached = type(unseen)()
    thread.start()
    reached.wait()
    assert thread.is_alive()
    core.write("x")
    unseen.set()
    thread.join()
    reached.close()
    assert core.raced == {"x"}


def test_run_of_a_subclass_is_ordered(core):
    class Worker(threading.Thread):
        def run(self):
            core.write("x")

    core.write("x")
    worker = Worker()
    worker.start()
    worker.join()
    core.write("x")
    assert not core.raced


def test_start_of_a_subclass_is_the_place_of_the_start(core):
    class Worker(threading.Thread):
        def start(self):
            super().start()

        def run(self):
            self.uid = core.thread_uid()

    worker = Worker(name="first name")
    worker.start()
    worker.join()
    name, places = described(worker.uid)
    assert name == "first name"
    assert [function.rpartition(".")[2] for _, _, function in places[:2]] == [
        "start", "test_start_of_a_subclass_is_the_place_of_the_start"]
    assert places[0][0] == __file__
    assert places[0][1] == Worker.start.__code__.co_firstlineno + 1


def test_name_is_the_current_one(core, unseen):
    uids = []
    thread = threading.Thread(target=lambda: (uids.append(core.thread_uid()), unseen.wait()), name="early")
    thread.start()
    while not uids:
        pass
    assert sync.describe(uids[0])[0] == "early"
    thread.name = "late"
    assert sync.describe(uids[0])[0] == "late"
    unseen.set()
    thread.join()
    del thread
    assert sync.describe(uids[0])[0] == "late"


def test_installing_thread_has_its_name_and_no_start(core):
    assert sync.describe(core.thread_uid()) == (threading.current_thread().name, ())
    assert sync.describe(10**6) == ("thread 1000000", ())


def test_timer_is_ordered_by_its_start_and_its_join(core):
    core.write("x")
    timer = threading.Timer(0, core.write, ("x",))
    timer.start()
    timer.join()
    core.write("x")
    assert not core.raced


def test_thread_that_fails_is_joined_like_any(core, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda args: failures.append(args.exc_type))
    failures = []

    def fail():
        core.write("x")
        raise LookupError

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    core.write("x")
    assert not core.raced
    assert failures == [LookupError]


def test_errors_are_those_of_threading(core):
    thread = threading.Thread(target=lambda: None)
    with pytest.raises(RuntimeError, match="cannot join thread before it is started"):
        thread.join()
    thread.start()
    with pytest.raises(RuntimeError, match="threads can only be started once"):
        thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="cannot join current thread"):
        threading.current_thread().join()
    assert level_in(core) == 0


def test_raw_threads_are_ordered_by_their_start_alone(core, unseen):
    core.write("before")
    done = type(unseen)()
    uids = []

    def target(name, *, other):
        core.write("before")
        unseen.wait()
        core.write(name)
        core.write(other)
        uids.append(core.thread_uid())
        done.set()

    ident = _thread.start_new_thread(target, ("x",), {"other": "y"})
    assert isinstance(ident, int)
    core.write("x")
    unseen.set()
    done.wait()
    core.write("y")
    assert core.raced == {"x", "y"}
    name, places = described(uids[0])
    assert name.endswith("target")
    assert places[0][0] == __file__
    done.close()


def test_raw_start_complains_as_before(core):
    with pytest.raises(TypeError, match="callable"):
        _thread.start_new_thread(1, ())
    with pytest.raises(TypeError):
        _thread.start_new_thread(print)


@pytest.mark.skipif(not hasattr(_thread, "start_joinable_thread"), reason="3.13")
def test_joinable_raw_threads_work(core):
    handle = _thread.start_joinable_thread(lambda: core.write("x"))
    handle.join()
    assert handle.is_done()


def test_muted_inside_start_alone(core):
    levels = []
    run(lambda: levels.append(level_in(core)))
    assert levels == [0]
    assert level_in(core) == 0


def test_overlap_lets_threads_run_beside_each_other(monkeypatch):
    pauses = []
    monkeypatch.setattr("gilscope.toolkit.race.sync.layer.sleep", pauses.append)
    from tests.race.fakes.core import FakeCore
    undo = sync.install(FakeCore(), overlap=0.5)
    try:
        for _ in range(100):     # one after the other: two that begin at once may take one pause more
            run(lambda: None)
    finally:
        undo()
    assert pauses == [0.5] * 64


def test_undo_puts_everything_back():
    import queue
    owners = [threading, _thread, queue, threading.Thread, threading.Event, threading.Semaphore,
              threading.BoundedSemaphore, threading.Barrier, threading.Condition, queue.Queue, queue.LifoQueue,
              queue.PriorityQueue]
    before = [dict(vars(owner)) for owner in owners], list(sys.meta_path)
    with installed():
        assert [dict(vars(owner)) for owner in owners] != before[0]
    after = [dict(vars(owner)) for owner in owners], list(sys.meta_path)
    assert after == before


def test_what_was_made_under_the_layer_works_after_its_undo():
    with installed():
        event, semaphore, condition = threading.Event(), threading.Semaphore(0), threading.Condition()
        barrier = threading.Barrier(2, timeout=PATIENCE)
        ready = threading.Semaphore(0)

        def use():
            ready.release()
            assert event.wait(PATIENCE)
            assert semaphore.acquire(timeout=PATIENCE)
            with condition:
                condition.notify_all()
            barrier.wait()

        thread = threading.Thread(target=use)
        thread.start()
        ready.acquire()
    with condition:
        event.set()
        semaphore.release()
        assert condition.wait(PATIENCE)
    barrier.wait()
    thread.join(PATIENCE)
    assert not thread.is_alive()
