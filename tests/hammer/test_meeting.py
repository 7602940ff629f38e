"""Threads that make their calls in rounds, begin together, and show that they live."""

import threading

import pytest

from gilscope.toolkit.hammer import meeting as meetings
from gilscope.toolkit.hammer.meeting import SignsOfLife, run_together
from tests.patience import PATIENCE

THREADS = 3


@pytest.fixture
def no_life():
    return SignsOfLife(lambda: None, lambda _: 0)


def run(work, life, threads=THREADS):
    return run_together([work] * threads, None, life, stalls=False, seed=1)


def test_no_thread_begins_a_round_before_all_have_ended_the_last_one(no_life, monkeypatch):
    monkeypatch.setattr(meetings, "MEETING_SECONDS", PATIENCE)
    log = []

    def work(meeting, thread):
        for number in range(20):
            assert meeting.wait(thread, number)
            log.append(number)

    run(work, no_life)
    assert log == sorted(log)
    assert len(log) == 20 * THREADS


def test_all_threads_stop_after_the_same_round_when_the_time_is_up(no_life, monkeypatch):
    monkeypatch.setattr(meetings, "MEETING_SECONDS", 0)
    made = [[] for _ in range(THREADS)]

    def work(meeting, thread):
        number = 0
        while meeting.wait(thread, number):
            made[thread].append(number)
            number += 1

    assert run(work, no_life) == 1
    assert made == [[0]] * THREADS


def test_each_thread_does_its_own_work_in_a_thread_of_its_own(no_life):
    threads = {}
    all_here = threading.Barrier(THREADS)

    def work(_, thread):
        all_here.wait(PATIENCE)
        threads[thread] = threading.get_ident()

    run(work, no_life)
    assert sorted(threads) == [*range(THREADS)]
    assert len({*threads.values(), threading.get_ident()}) == THREADS + 1


def test_thread_that_fails_holds_up_nobody(no_life, monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", seen.append)    # what `_thread` calls

    def work(_, thread):
        if thread == 0:
            raise ValueError("no")

    run(work, no_life)
    assert [each.exc_type for each in seen] == [ValueError]


def test_life_is_shown_while_threads_run_and_calls_return(monkeypatch):
    monkeypatch.setattr(meetings, "LIFE_SECONDS", 0.001)
    calls, alive = [], threading.Event()

    def work(_, thread):
        calls.append(thread)
        assert alive.wait(PATIENCE)     # without a sign of life, it ends late, and fails

    run(work, SignsOfLife(alive.set, lambda _: len(calls)))
    assert alive.is_set()


def test_no_sign_of_life_without_a_call_since_the_last_one():
    signs, calls = [], [0]
    life = SignsOfLife(lambda: signs.append(calls[0]), lambda _: calls[0])
    for calls[0] in (0, 0, 2, 2, 3):
        life.look(None)
    assert signs == [2, 3]
