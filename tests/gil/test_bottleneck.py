"""The one sentence that says what limits a program: of made-up records."""

from dataclasses import replace

import pytest

from gilscope.toolkit.gil.bottleneck import Limiter, file_line, find_limit, held_share
from gilscope.toolkit.gil.holders import find_holders, find_stoppers
from gilscope.toolkit.gil.records import CodeLine, SpanKind, SpanTotal, ThreadSpan, WaitReason
from gilscope.toolkit.gil.summary import summarize
from tests.gil.recorded import make_process, make_site, make_thread

OWN = CodeLine("/home/me/bank.py", 14, "deposit")


def limit_of(process):
    return find_limit(summarize([process]), find_holders([process]))


def contended(reason, seconds=0.5, *, kind=SpanKind.PARK, on=""):
    """Return a process of which a thread waits `seconds` of its second; the main one waits for its end."""
    total = SpanTotal(3, seconds, seconds, 0.0)
    site = make_site(171, reason, file="/usr/lib/python3.14/queue.py", function="Queue.get", on=on, caller=OWN,
                     parked=total)
    threads = (make_thread(0, [ThreadSpan(SpanKind.IDLE, 0.0, 0.99, 0, 0, 0, None, 0)], main=True, cpu=0.01,
                           run_queue=0.0),
               make_thread(1, [ThreadSpan(kind, 0.0, seconds, 1, 0, 0, None, 0)], cpu=1 - seconds, run_queue=0.0))
    return make_process(threads=threads, sites=(None, site))


def test_gil_limits_and_its_holder_is_named():
    found = limit_of(make_process())
    assert (found.what, found.thread, found.place.line) == (Limiter.GIL, "thread 1: spin", 6)
    assert found.share == pytest.approx(0.476, abs=0.001)     # 1 s of two threads' seconds, and main's 0.1 s


@pytest.mark.parametrize(("reason", "on", "what", "begin"), [
    (WaitReason.LOCK, "", Limiter.LOCK, "A lock limits it: "),
    (WaitReason.OBJECT, "list", Limiter.OBJECT, "A list that threads share limits it: "),
    (WaitReason.OBJECT, "BlockStore", Limiter.OBJECT, "A BlockStore that threads share limits it: "),
    (WaitReason.WORLD, "", Limiter.PAUSES, "Pauses in which all threads are stopped limit it: "),
])
def test_lock_objects_and_pauses_are_three_things(reason, on, what, begin):
    found = limit_of(contended(reason, on=on))
    assert (found.what, found.place, found.share) == (what, OWN, pytest.approx(0.5, abs=0.01))
    where = "" if what is Limiter.PAUSES else ", most at bank.py:14 deposit"
    assert found.sentence == f"{begin}threads that want to run waited 50 % of the time they had work{where}."


def test_who_stops_all_threads_is_named_where_that_limits_them():
    process = contended(WaitReason.WORLD)
    stopping = [make_site(line, WaitReason.STOPPING, thread=0, held=SpanTotal(3, seconds, 0.2, 0.0), function="collect")
                for line, seconds in ((7, 0.1), (8, 0.4))]
    stoppers = find_stoppers([replace(process, sites=(*process.sites, *stopping))])
    found = find_limit(summarize([process]), (), stoppers=stoppers)
    assert (found.what, found.thread, found.place) == (Limiter.PAUSES, "main", OWN)
    lock = contended(WaitReason.LOCK)
    assert find_limit(summarize([lock]), (), stoppers=stoppers).thread is None


def test_whether_threads_spun_for_a_lock_or_for_an_object_is_not_known():
    found = limit_of(contended(WaitReason.SPIN, kind=SpanKind.SPIN))
    assert (found.what, found.place) == (Limiter.LOCK, OWN)
    assert found.sentence.startswith("A lock or an object that threads share limits it: ")


def test_program_that_neither_runs_nor_waits_for_others_waits_for_io():
    threads = (make_thread(0, [], main=True, cpu=0.05, run_queue=0.0),
               *(make_thread(number, [], cpu=0.04, run_queue=0.0) for number in (1, 2)))
    found = limit_of(make_process(threads=threads, sites=(None,)))
    assert (found.what, found.share) == (Limiter.IO, pytest.approx(2.87 / 3))
    assert found.sentence == ("It waits for I/O or sleeps for 96 % of its threads' time, joins and queues aside. "
                              "They hardly waited for each other.")


@pytest.mark.parametrize(("waited", "queued", "what", "words"), [
    (0.05, 0.4, Limiter.CORES, "It needs more cores than it got: threads that were ready to run waited for one 40 %"),
    (0.3, 0.4, Limiter.CORES, "Partly at the same time, they waited 30 % for a lock, most at bank.py:14 deposit."),
    (0.4, 0.3, Limiter.LOCK, "most at bank.py:14 deposit."),
    (0.4, 0.05, Limiter.LOCK, "most at bank.py:14 deposit."),
    (0.05, 0.05, Limiter.NOTHING, "Nothing limits it"),
])
def test_wait_for_a_core_is_weighed_against_the_others(waited, queued, what, words):
    process = contended(WaitReason.LOCK, waited)
    main, worker = process.threads
    found = limit_of(replace(process, threads=(main, replace(worker, cpu=1 - waited - queued, run_queue=queued))))
    assert (found.what, found.queued) == (what, pytest.approx(queued, abs=0.01))
    assert words in found.sentence


def test_one_thread_that_waits_for_a_core_is_not_limited_by_nothing():
    threads = (make_thread(0, [], main=True, cpu=0.5, run_queue=0.45),)
    found = limit_of(make_process(threads=threads, sites=(None,)))
    assert found.what is Limiter.CORES
    assert found.sentence == "Other programs used its core: it waited for one 45 % of the time it had work."


def test_two_threads_that_wait_for_a_core_need_more_of_them():
    threads = tuple(make_thread(number, [], main=number == 0, cpu=0.5, run_queue=0.45) for number in range(2))
    found = limit_of(make_process(threads=threads, sites=(None,)))
    assert found.sentence == ("It needs more cores than it got: threads that were ready to run waited for one 45 % of "
                              "the time they had work. Whether they wait for each other, only a run with enough cores "
                              "shows.")


def test_nothing_limits_threads_that_run():
    found = limit_of(contended(WaitReason.LOCK, 0.02))
    assert (found.what, found.place) == (Limiter.NOTHING, None)
    assert found.sentence == ("Nothing limits it: its threads waited for locks and objects 2.0 % of the time they had "
                              "work.")


def test_program_without_threads_is_said_to_have_one():
    threads = (make_thread(0, [], main=True, cpu=0.95, run_queue=0.0),)
    found = limit_of(make_process(threads=threads, sites=(None,)))
    assert found.sentence == "Nothing that threads wait for limits it: it had one thread."


def test_what_limits_a_killed_program_whose_cpu_time_is_not_known_is_not_known():
    threads = (make_thread(0, [], main=True, cpu=None, run_queue=None),)
    assert limit_of(make_process(threads=threads, sites=(None,), ended=False)).what is Limiter.UNKNOWN


def test_what_killed_threads_may_have_done_counts_as_their_work():
    # A thread that waits for work until the end is not the only one that wanted to run: the others were killed.
    total = SpanTotal(1, 0.5, 0.5, 0.0)
    waiting = make_thread(0, [], main=True, cpu=0.01, totals={**make_thread(0, []).totals, SpanKind.PARK: total})
    killed = (make_thread(number, [], cpu=None, run_queue=None, end=10.0) for number in (1, 2))
    site = make_site(7, WaitReason.LOCK, thread=0, parked=total)
    assert limit_of(make_process(threads=(waiting, *killed), sites=(None, site))).what is Limiter.NOTHING


def test_a_wait_in_which_nobody_had_the_gil_is_none_for_it():
    # On a busy machine a thread is woken and has no core: nobody keeps the GIL from it.
    process = make_process()
    hardly = [site and replace(site, caused=site.caused / 20) for site in process.sites]
    summary = summarize([process])
    holders = find_holders([replace(process, sites=tuple(hardly))])
    assert held_share(summary, holders) == pytest.approx(0.05)
    assert find_limit(summary, holders).what is Limiter.NOTHING


def test_waits_for_a_gil_that_nobody_has_are_waits_for_a_core_if_its_next_holder_had_none():
    process = make_process()
    threads = (process.threads[0], *(replace(thread, run_queue=0.3) for thread in process.threads[1:]))
    hardly = tuple(site and replace(site, caused=site.caused / 20) for site in process.sites)
    found = limit_of(replace(process, threads=threads, sites=hardly))
    assert (found.what, found.share) == (Limiter.CORES, pytest.approx(0.95 * 1.0 / 2.1))


def test_many_threads_that_each_do_little_and_wait_for_a_core_are_not_limited_by_nothing():
    threads = (make_thread(0, [], main=True, end=2.0, cpu=2.0, run_queue=0.0),
               *(make_thread(number, [], end=0.2, cpu=0.01, run_queue=0.19) for number in range(1, 11)))
    assert limit_of(make_process(threads=threads, sites=(None,), seconds=2.0)).what is Limiter.CORES


def test_start_of_a_program_that_then_sleeps_does_not_limit_it():
    idle = [ThreadSpan(SpanKind.IDLE, 0.05, 1.0, 0, 0, 0, None, 0)]
    for queued in (0.0, 0.15):     # a busy machine
        threads = (make_thread(0, idle, main=True, cpu=0.02, run_queue=0.03),
                   make_thread(1, [], cpu=0.003, run_queue=queued))
        assert limit_of(make_process(threads=threads, sites=(None,))).what is Limiter.IO


def test_where_threads_idle_or_wait_for_the_gil_is_not_the_place_of_a_lock():
    summary = summarize([contended(WaitReason.LOCK)])
    (place,) = (each for each in summary.places if each.reason is WaitReason.LOCK)
    others = (replace(place, idle=True, line=1), replace(place, reason=WaitReason.GIL, line=2))
    found = find_limit(replace(summary, places=(*others, place)), ())
    assert found.place == OWN


@pytest.mark.parametrize(("file", "text"), [
    ("/home/me/bank.py", "bank.py:14"), ("/lib/re/__init__.py", "re/__init__.py:14"), ("<string>", "<string>:14"),
    ("<frozen importlib._bootstrap>", "_bootstrap:14"),
])
def test_place_is_named_by_its_file(file, text):
    assert file_line(replace(OWN, file=file)) == text


def test_an_object_whose_type_is_called_lock_is_no_lock():
    found = limit_of(contended(WaitReason.OBJECT, on="lock"))
    assert found.what is Limiter.OBJECT


@pytest.mark.parametrize(("seconds", "what"), [(0.1, Limiter.LOCK), (0.099, Limiter.NOTHING)])
def test_a_tenth_of_their_time_is_what_limits(seconds, what):
    summary = summarize([contended(WaitReason.LOCK, seconds)])
    worker = replace(next(row for row in summary.threads if row.parked), seconds=1.0, idle=0.0)
    assert find_limit(replace(summary, threads=[worker]), ()).what is what
