"""Event, Condition, Semaphore and Barrier: the order they promise, and none beyond."""

import threading

import pytest

from tests.patience import PATIENCE
from tests.race.sync.layer import Unseen, level_in, run


@pytest.fixture
def another():
    event = Unseen()
    yield event
    event.close()


def in_turn(*steps):
    """Run each step in a thread of its own, one after the other in time, unordered by anything that a checker knows."""
    turns = [Unseen() for _ in steps]

    def step_at(index):
        def step():
            if index:
                turns[index].wait()
            try:
                steps[index]()
            finally:
                if index + 1 < len(steps):
                    turns[index + 1].set()
        return step

    run(*[step_at(index) for index in range(len(steps))])
    for turn in turns:
        turn.close()


def test_in_turn_orders_nothing(core):
    in_turn(lambda: core.write("x"), lambda: core.write("x"))
    assert core.raced == {"x"}


# -- locks ---------------------------------------------------------------------------------------------------------


def test_lock_orders(core):
    lock = threading.Lock()

    def locked():
        with lock:
            core.write("x")

    in_turn(locked, locked)
    assert not core.raced


# -- Event ---------------------------------------------------------------------------------------------------------


def test_event_wait_orders(core):
    event = threading.Event()
    run(lambda: (core.write("x"), event.set()), lambda: (event.wait(PATIENCE), core.write("x")))
    assert not core.raced


def test_event_that_is_set_orders(core):
    event = threading.Event()
    in_turn(lambda: (core.write("x"), event.set()), lambda: (event.is_set(), core.write("x")))
    assert not core.raced


def test_event_of_several_setters_orders_after_all(core):
    event = threading.Event()
    in_turn(lambda: (core.write("x"), event.set()), lambda: (core.write("y"), event.set()),
            lambda: (event.wait(), core.write("x"), core.write("y")))
    assert not core.raced


@pytest.mark.parametrize("look", [lambda event: event.wait(0), lambda event: event.is_set(),
                                  lambda event: event.clear()], ids=["wait", "is_set", "clear"])
def test_event_that_is_not_set_orders_nothing(core, look):
    event = threading.Event()
    in_turn(lambda: (core.write("x"), event.set(), event.clear()), lambda: (look(event), core.write("x")))
    assert core.raced == {"x"}


def test_event_orders_setter_before_waiter_alone(core, unseen):
    event = threading.Event()
    in_turn(lambda: (event.is_set(), core.write("x")), lambda: (core.write("x"), event.set()))
    assert core.raced == {"x"}


def test_what_follows_set_is_unordered(core):
    event = threading.Event()
    in_turn(lambda: (event.set(), core.write("x")), lambda: (event.wait(), core.write("x")))
    assert core.raced == {"x"}


# -- Condition -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["Lock", "RLock", None])
def test_notify_orders(core, unseen, make):
    condition = threading.Condition(make and getattr(threading, make)())

    def wait():
        with condition:
            unseen.set()
            assert condition.wait(PATIENCE)
        core.write("x")

    def notify():
        unseen.wait()
        with condition:
            core.write("x")
            condition.notify()

    run(wait, notify)
    assert not core.raced


def test_notify_is_a_hard_edge_and_the_lock_is_not(fake, unseen, another):
    condition, seen = threading.Condition(), []

    def wait():
        with condition:
            unseen.set()
            condition.wait(PATIENCE)
        seen.append(dict(fake.mine().hard))

    def notify():
        unseen.wait()
        with condition:
            seen.append((fake.thread_uid(), fake.mine().clocks[fake.thread_uid()]))
            condition.notify()
        another.set()

    run(wait, notify)
    (uid, at), hard = seen
    assert hard[uid] == at


def test_condition_wait_that_times_out_is_not_notified(fake):
    condition, seen = threading.Condition(), []

    def wait():
        with condition:
            assert not condition.wait(0.001)
        seen.append(dict(fake.mine().hard))

    def notify():
        with condition:
            seen.append(fake.thread_uid())
            condition.notify()

    in_turn(notify, wait)
    uid, hard = seen
    assert uid not in hard


def test_waiter_holds_nothing_but_the_lock(fake, unseen):
    condition = threading.Condition(threading.Lock())
    held = []

    def wait():
        with condition:
            unseen.set()
            condition.wait(PATIENCE)
            held.extend(lock for uid, lock in fake.held if uid == fake.thread_uid())

    def notify():
        unseen.wait()
        with condition:
            condition.notify()

    run(wait, notify)
    assert held == [condition._lock]


def test_wait_for_runs_its_predicate_as_the_programs_code(core, unseen):
    condition, lock, levels = threading.Condition(), threading.Lock(), []
    ready = []

    def predicate():
        levels.append(level_in(core))
        return bool(ready)

    def wait():
        with condition:
            unseen.set()
            assert condition.wait_for(predicate, PATIENCE)

    def notify():
        unseen.wait()
        with condition, lock:
            ready.append(1)
            condition.notify_all()

    run(wait, notify)
    assert set(levels) == {0}


def test_recursive_condition_waits_and_takes_its_lock_back(core, unseen):
    condition = threading.Condition()

    def wait():
        with condition, condition:
            unseen.set()
            assert condition.wait(PATIENCE)
            core.write("x")

    def notify():
        unseen.wait()
        with condition:
            core.write("x")
            condition.notify()

    run(wait, notify)
    assert not core.raced


def test_condition_complains_as_before(core):
    condition = threading.Condition()
    for method in (condition.wait, condition.notify):
        with pytest.raises(RuntimeError, match="un-acquired lock"):
            method()


# -- Semaphore -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Semaphore", "BoundedSemaphore"])
def test_semaphore_of_one_orders_as_a_lock(core, name):
    semaphore = getattr(threading, name)(1)

    def guarded():
        with semaphore:
            core.write("x")

    in_turn(guarded, guarded, guarded)
    assert not core.raced


@pytest.mark.parametrize("name", ["Semaphore", "BoundedSemaphore"])
def test_semaphore_of_two_does_not_order_two(core, name):
    semaphore = getattr(threading, name)(2)

    def guarded():
        with semaphore:
            core.write("x")

    in_turn(guarded, guarded)
    assert core.raced == {"x"}


def test_semaphore_as_a_signal_orders(core):
    semaphore = threading.Semaphore(0)
    run(lambda: (core.write("x"), semaphore.release()), lambda: (semaphore.acquire(), core.write("x")))
    assert not core.raced


def test_who_takes_all_permits_is_ordered_after_all_who_gave_them_back(core):
    semaphore = threading.Semaphore(3)

    def reader(name):
        def read():
            with semaphore:
                core.write(name)
        return read

    def writer():
        for _ in range(3):
            semaphore.acquire(timeout=PATIENCE)
        core.write("a")
        core.write("b")

    in_turn(reader("a"), reader("b"), writer)
    assert not core.raced


def test_release_of_several_gives_each_the_clock(core):
    semaphore = threading.Semaphore(0)
    in_turn(lambda: (core.write("x"), core.write("y"), semaphore.release(n=2)),
            lambda: (semaphore.acquire(), core.write("x")), lambda: (semaphore.acquire(), core.write("y")))
    assert not core.raced


@pytest.mark.parametrize("fail", [lambda s: s.acquire(blocking=False), lambda s: s.acquire(timeout=0.001)])
def test_semaphore_that_was_not_acquired_orders_nothing(core, fail):
    semaphore = threading.Semaphore(1)
    in_turn(lambda: (core.write("x"), semaphore.release(), semaphore.acquire(), semaphore.acquire()),
            lambda: (fail(semaphore), core.write("x")))
    assert core.raced == {"x"}


def test_release_that_failed_leaves_no_permit(core):
    semaphore = threading.BoundedSemaphore(1)

    def release_too_often():
        core.write("x")
        with pytest.raises(ValueError, match="released too many times"):
            semaphore.release()
        with pytest.raises(ValueError, match="one or more"):
            semaphore.release(0)

    in_turn(release_too_often, lambda: (semaphore.acquire(), semaphore.release(), semaphore.acquire(), core.write("x")))
    assert core.raced == {"x"}


def test_semaphore_of_many_permits_costs_no_memory_per_permit(core):
    semaphore = threading.Semaphore(10**12)
    assert semaphore.acquire()


def test_permits_that_are_not_counted_order_nothing(core, monkeypatch):
    monkeypatch.setattr("gilscope.toolkit.race.sync.primitives.MOST_PERMITS", 2)
    semaphore = threading.Semaphore(3)     # the second thread may have got any of the initial permits
    in_turn(lambda: (core.write("x"), semaphore.release()), lambda: (semaphore.acquire(), core.write("x")))
    assert core.raced == {"x"}


def test_subclass_of_semaphore_orders(core):
    class Named(threading.Semaphore):
        def __init__(self, name):
            super().__init__(0)
            self.name = name

        def acquire(self, *arguments, **named):
            return super().acquire(*arguments, **named)

    semaphore = Named("n")
    run(lambda: (core.write("x"), semaphore.release()), lambda: (semaphore.acquire(), core.write("x")))
    assert not core.raced


# -- Barrier -------------------------------------------------------------------------------------------------------


def test_barrier_orders_all_who_arrive_before_all_who_depart(core):
    barrier = threading.Barrier(3, timeout=PATIENCE)

    def step(mine, *others):
        def run_step():
            core.write(mine)
            barrier.wait()
            for other in others:
                core.write(other)
        return run_step

    run(step("a", "b"), step("b", "c"), step("c", "a"))
    assert not core.raced


def test_what_follows_a_barrier_is_unordered(core):
    barrier = threading.Barrier(2, timeout=PATIENCE)
    run(*[lambda: (barrier.wait(), core.write("x"))] * 2)
    assert core.raced == {"x"}


def test_generations_of_a_barrier_order_one_after_the_other(core):
    barrier = threading.Barrier(2, timeout=PATIENCE)

    def step(own):
        def run_step():
            for turn in range(20):
                if turn % 2 == own:
                    core.write("x")
                barrier.wait()
        return run_step

    run(step(0), step(1))
    assert not core.raced


def test_departure_is_not_ordered_after_arrivals_of_later_generations(core, unseen):
    barrier = threading.Barrier(2, timeout=PATIENCE)
    early, passed = Unseen(), Unseen()

    def first():
        barrier.wait()
        early.wait()
        core.write("x")

    def second():
        barrier.wait()
        core.write("x")
        early.set()
        passed.set()
        barrier.wait()

    def third():
        passed.wait()      # else it might be who `first` meets
        barrier.wait()

    run(first, second, third)
    early.close()
    passed.close()
    assert core.raced == {"x"}


def test_action_of_a_barrier_comes_between_and_is_the_programs_code(core):
    levels = []

    def action():
        levels.append(level_in(core))
        for name in ("a", "b", "x"):
            core.write(name)

    barrier = threading.Barrier(2, action, PATIENCE)
    run(lambda: (core.write("a"), barrier.wait(), core.write("x")), lambda: (core.write("b"), barrier.wait()))
    assert not core.raced
    assert levels == [0]


def test_failing_action_breaks_the_barrier_as_before(core):
    def action():
        raise LookupError

    barrier = threading.Barrier(1, action)
    with pytest.raises(LookupError):
        barrier.wait()
    assert barrier.broken
    assert level_in(core) == 0


def test_abort_orders_those_it_turns_away(core):
    barrier = threading.Barrier(2)

    def wait():
        with pytest.raises(threading.BrokenBarrierError):
            barrier.wait(PATIENCE)
        core.write("x")

    def abort():
        while not barrier.n_waiting:
            pass
        core.write("x")
        barrier.abort()

    run(wait, abort)
    assert not core.raced
    barrier.reset()
    run(lambda: barrier.wait(PATIENCE), lambda: barrier.wait(PATIENCE))


def test_reset_orders_those_it_turns_away(core):
    barrier = threading.Barrier(2)

    def wait():
        with pytest.raises(threading.BrokenBarrierError):
            barrier.wait(PATIENCE)
        core.write("x")

    def reset():
        while not barrier.n_waiting:
            pass
        core.write("x")
        barrier.reset()

    run(wait, reset)
    assert not core.raced


def test_those_who_abort_a_barrier_are_unordered(core):
    barrier = threading.Barrier(2)
    in_turn(lambda: (core.write("x"), barrier.abort()), lambda: (barrier.abort(), core.write("x")))
    assert core.raced == {"x"}


def test_barrier_that_times_out_is_broken_as_before(core):
    barrier = threading.Barrier(2)
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait(0.001)
    assert barrier.broken
