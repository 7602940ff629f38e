"""The answer in a few lines: who, where, what to do, of made-up records."""

from dataclasses import replace

import pytest

from gilscope.toolkit.commands.gil.report import answer_document
from gilscope.toolkit.gil.answer import answer_lines, names_text
from gilscope.toolkit.gil.bottleneck import Limiter
from gilscope.toolkit.gil.diagnosis import diagnose
from gilscope.toolkit.gil.holders import Stopper
from gilscope.toolkit.gil.recorder import Recording
from gilscope.toolkit.gil.records import CodeLine, SpanKind, SpanTotal, ThreadSpan, WaitReason
from gilscope.toolkit.gil.rerun_without_gil import WithoutGil
from gilscope.toolkit.report.terminal import render
from tests.gil.recorded import make_process, make_site, make_thread

MOST_LINES = 12


def diagnosed(*processes, ended=0):
    return diagnose(["program.py"], Recording(ended=ended, wall=1.0, cpu=1.9, processes=processes))


def line(found, label):
    """Return the line of the answer that begins with `label`, or ""."""
    return next((text for text in answer_lines(found) if text.startswith(label)), "")


def stalling(*holds, seconds=1.0, run_queue=(0.0, 0.0)):
    """Return a process in which thread 2 has the GIL in `holds` while thread 1 waits, which else sleeps.

    `run_queue` has the seconds in which each lacked a core.
    """
    lasted = [end - begin for begin, end in holds]
    held = SpanTotal(len(holds), sum(lasted), max(lasted), 0.0)
    threads = (
        make_thread(1, [ThreadSpan(SpanKind.WAIT, *hold, 0, 1, 1, 2, 0) for hold in holds], name="beat", end=seconds,
                    cpu=0.0, run_queue=run_queue[0]),
        make_thread(2, [ThreadSpan(SpanKind.HOLD, *hold, 1, 0, 0, None, 0) for hold in holds], name="work", end=seconds,
                    cpu=0.0, run_queue=run_queue[1]))
    return make_process(threads=threads, seconds=seconds,
                        sites=(None, make_site(9, thread=2, held=held, caused=sum(lasted))))


@pytest.mark.parametrize(("seconds", "what"), [
    (1.0, Limiter.GIL),
    (20.0, Limiter.IO),      # hardly longer for it, and yet it answers late
])
def test_who_stalls_a_thread_is_said_whatever_limits_the_program(seconds, what):
    found = diagnosed(stalling((0.1, 0.22), (0.3, 0.42), (0.5, 0.6), (0.7, 0.71), seconds=seconds))
    assert found.limit.what is what
    assert line(found, "longest stall") == (
        "longest stall: beat, 120 ms, 3 times, while work had the GIL at program.py:9 spin")
    assert "program.py:9" in line(found, "do")


TURNS = stalling(*((number / 50, number / 50 + 0.01) for number in range(50)))
ONE_LONG_TURN = stalling(*((number / 50, number / 50 + 0.01) for number in range(45)), (0.91, 0.97))


@pytest.mark.parametrize("process", [
    TURNS,       # however many
    stalling((0.1, 0.22), run_queue=(0.0, 0.8)),       # a holder without a core
])
def test_turns_and_holders_without_a_core_are_no_stalls(process):
    assert not line(diagnosed(process), "longest stall")


def test_who_has_the_gil_is_said_beside_waits_for_cores():
    found = diagnosed(stalling((0.1, 0.5), (0.5, 0.7), run_queue=(0.8, 0.0)))
    assert (found.limit.what, found.limit.also) == (Limiter.CORES, (Limiter.GIL,))
    assert line(found, "held by").startswith("held by: work at program.py:9 spin: 100 % of the waits")
    assert line(found, "longest stall").startswith("longest stall: beat, 400 ms, 2 times, while work had the GIL at ")
    assert line(found, "do").startswith("do: make the call at program.py:9 shorter")


def convoy(victims=3, waits=20, name="sender-{}"):
    """Return a process in which `victims` threads wait a switch interval again and again behind one that computes."""
    turn = 0.0051
    computing = [ThreadSpan(SpanKind.HOLD, number * turn, number * turn + 0.005, 1, 0, 0, None, 0)
                 for number in range(waits)]
    threads = [make_thread(0, [], main=True, cpu=0.0), make_thread(1, computing, called="counter", cpu=0.1)]
    for victim in range(victims):
        spans = [span for number in range(waits) for span in (
            ThreadSpan(SpanKind.WAIT, number * turn, number * turn + 0.005, 0, 1, 1, 2, 0),
            ThreadSpan(SpanKind.HOLD, number * turn + 0.005, number * turn + 0.00501, 2, 0, 0, None, 0))]
        threads.append(make_thread(2 + victim, spans, called=name.format(victim), end=waits * turn, cpu=0.0,
                                   run_queue=0.0))
    held = SpanTotal(waits, waits * 0.005, 0.005, 0.0)
    sites = (None, make_site(6, held=held, caused=victims * held.seconds, function="count"), make_site(9, thread=2))
    return make_process(sites=sites, threads=tuple(threads))


def test_convoy_with_all_its_victims_is_one_line():
    found = diagnosed(convoy())
    assert len(found.convoys) == 3
    assert line(found, "held by").startswith("held by: counter at program.py:6 count: 100 % of the waits")
    told = [text for text in answer_lines(found) if "sender" in text]
    assert told == [
        "convoy: sender-0 to 2 got the GIL back only after a switch interval (5.00 ms), 60 times: 300 ms"]
    assert "setswitchinterval" in line(found, "do")
    assert "sender-0 to 11 got" in line(diagnosed(convoy(12)), "convoy")


@pytest.mark.parametrize(("names", "text"), [
    (["main"], "main"),
    (["b-2", "main", "b-1", "b-0"], "b-0 to 2, main"),
    (["Thread-1 (work2)", "Thread-2 (work2)", "Thread-3 (work2)"], "Thread-1 to 3 (work2)"),
    (["thread 1: spin", "thread 2: spin"], "thread 1: spin, thread 2: spin"),
    (["b-1", "b-2", "b-4", "b-5", "b-6"], "b-1, b-2, b-4 to 6"),
    (["same", "same"], "same"),
    ([f"{letter * 10}-x" for letter in "abcdef"], "aaaaaaaaaa-x, bbbbbbbbbb-x, cccccccccc-x and 3 more"),
])
def test_numbered_threads_are_named_as_a_range(names, text):
    assert names_text(names) == text


def waiting(reason, parked, *, free=False, run_queue=0.0):
    """Return a process of which a thread waits `parked` of its second; the main one waits for its end."""
    total = SpanTotal(3, parked, parked, 0.0)
    threads = (make_thread(0, [ThreadSpan(SpanKind.IDLE, 0.0, 0.99, 0, 0, 0, None, 0)], main=True, cpu=0.01,
                           run_queue=0.0),
               make_thread(1, [ThreadSpan(SpanKind.PARK, 0.0, parked, 1, 0, 0, None, 0)], called="teller",
                           cpu=1 - parked, run_queue=run_queue))
    return make_process(threads=threads, sites=(None, make_site(14, reason, function="deposit", parked=total)),
                        free_threaded=free, gil_used=not free)


@pytest.mark.parametrize(("found", "what", "step"), [
    (diagnosed(TURNS), Limiter.GIL, "do: `gilscope run MODULE:FUNCTION` compares"),
    (diagnosed(ONE_LONG_TURN), Limiter.GIL, "do: `gilscope run MODULE:FUNCTION` compares"),
    (diagnosed(make_process()), Limiter.GIL, "do: make the call at program.py:6 shorter"),
    (diagnosed(waiting(WaitReason.LOCK, 0.5)), Limiter.LOCK, "do: hold the lock for a shorter time"),
    (diagnosed(waiting(WaitReason.OBJECT, 0.5, free=True)), Limiter.OBJECT, "do: give each thread its own object"),
    (diagnosed(waiting(WaitReason.WORLD, 0.5, free=True)), Limiter.PAUSES, "do: stop all threads less often: garbage "),
    (diagnosed(waiting(WaitReason.LOCK, 0.01)), Limiter.NOTHING, ""),
    (diagnosed(waiting(WaitReason.LOCK, 0.01, free=True)), Limiter.NOTHING, "do: if it is slower than its cores allow"),
    (diagnosed(make_process(threads=(make_thread(0, [], main=True, cpu=0.95, run_queue=0.0),), sites=(None,))),
     Limiter.NOTHING, "do: `gilscope run MODULE:FUNCTION` measures"),
    (diagnosed(make_process(threads=(make_thread(0, [], main=True, cpu=0.5, run_queue=0.45),), sites=(None,))),
     Limiter.CORES, "do: run it on a quiet machine"),
    (diagnosed(make_process(threads=(make_thread(0, [], main=True, cpu=0.0, run_queue=0.0),), sites=(None,))),
     Limiter.IO, "do: if it waits for one thing after another, use threads or asyncio"),
])
def test_each_limit_has_its_next_step(found, what, step):
    assert found.limit.what is what
    assert line(found, "do").startswith(step)
    assert bool(line(found, "do")) == bool(step)
    if what in {Limiter.LOCK, Limiter.OBJECT, Limiter.PAUSES}:
        assert line(found, "waiting") == "waiting: teller, 500 ms in all"


@pytest.mark.parametrize(("cpu", "step"), [
    (0.5, "do: run it on a quiet machine, or with no more threads than cores"),
    (0.1, "do: run it on a quiet machine"),      # they wait for I/O: fewer of them would wait longer
])
def test_fewer_threads_are_advised_to_those_that_compute(cpu, step):
    threads = tuple(make_thread(number, [], main=number == 0, cpu=cpu, run_queue=0.48) for number in range(2))
    found = diagnosed(make_process(threads=threads, sites=(None,)))
    assert (found.limit.what, line(found, "do")) == (Limiter.CORES, step)


def test_order_of_locks_is_advised_where_threads_wait_for_each_others_locks():
    def crossed(second_begin, idle_until=3.0):
        idle = make_thread(0, [ThreadSpan(SpanKind.IDLE, 0.01, idle_until, 0, 0, 0, None, 0)], main=True, end=3.0,
                           cpu=0.01)
        threads = (make_thread(number, [ThreadSpan(SpanKind.PARK, begin, begin + 1.5, number, 0, 0, None, 0)], end=3.0,
                               cpu=0.01) for number, begin in ((1, 0.2), (2, second_begin)))
        sites = (None, *(make_site(7, WaitReason.LOCK, thread=number) for number in (1, 2)))
        return diagnosed(make_process(threads=(idle, *threads), seconds=3.0, sites=sites))

    assert crossed(0.3).stuck == pytest.approx(1.4)
    assert line(crossed(0.3), "do").startswith("do: take locks in one order everywhere")
    assert crossed(0.3, idle_until=0.4).stuck == pytest.approx(0.1)     # a third thread may have what both wait for
    assert crossed(1.5).stuck == pytest.approx(0.2)     # one of them had what the other waited for
    assert line(crossed(1.5), "do").startswith("do: hold the lock for a shorter time")


def test_who_stops_all_threads_is_named_where_that_limits_them():
    stopper = Stopper(thread="main", place=CodeLine("/home/me/program.py", 8, "collect"), seconds=0.5, longest=0.2)
    found = diagnosed(waiting(WaitReason.WORLD, 0.5, free=True))
    assert line(replace(found, stoppers=(stopper,)), "stopped by") == (
        "stopped by: main at program.py:8 collect, up to 200 ms at a time")
    assert "do: stop all threads less often at program.py:8: " in line(replace(found, stoppers=(stopper,)), "do")
    found = diagnosed(waiting(WaitReason.WORLD, 0.5, free=True, run_queue=0.6))
    assert found.limit.what is Limiter.CORES
    assert line(replace(found, stoppers=(stopper,)), "stopped by")
    assert line(found, "do").startswith("do: run it on a quiet machine, and stop all threads less often: ")
    found = diagnosed(waiting(WaitReason.LOCK, 0.5, free=True))
    assert not line(replace(found, stoppers=(stopper,)), "stopped by")


def elsewhere(**changes):
    values = {"build": "3.13t", "version": "3.13.1", "wall": 0.5, "walls": (0.5,), "cpu": 1.0, "ratio": 2.0,
              "refused": None, "busy": False}
    values["walls"] = (changes.get("wall", 0.5),)
    return WithoutGil(**{**values, **changes})


@pytest.mark.parametrize(("there", "said"), [
    (elsewhere(), "On 3.13t, without the GIL, it was 2.0 times as fast: 500 ms instead of 1.00 s, one run each."),
    (elsewhere(walls=(0.48, 0.5, 0.5)), "500 ms instead of 1.00 s, 3 runs there."),
    (elsewhere(wall=1.9, walls=(0.085, 1.9, 2.7), ratio=0.5),
     "it took 85.0 ms to 2.70 s in 3 runs, instead of 1.00 s: runs differ too much for one number."),
    (elsewhere(version="3.15.0", build="3.15t"),
     "On 3.15t (3.15.0, not 3.13.1), without the GIL, it was 2.0 times as fast"),
    (elsewhere(version="3.13.15", ratio=1.01, wall=0.99), "On 3.13t (3.13.15, not 3.13.1): 990 ms instead of 1.00 s"),
    *((elsewhere(version=version), "On 3.13t, without the GIL") for version in ("3.13.1+", "3.13.1rc1+dev")),
    (elsewhere(wall=1.0, walls=(0.9, 1.0, 1.2), ratio=1.0), "runs differ too much for one number."),
    (elsewhere(ratio=0.5, wall=2.0), "it took 2.0 times as long: 2.00 s instead of 1.00 s"),
    (elsewhere(ratio=1.01, wall=0.99), "On 3.13t: 990 ms instead of 1.00 s (1 run): no gain."),
    (elsewhere(busy=True), "3.13t, without the GIL, it was 2.0 times as fast"),
    (elsewhere(ratio=1.01, wall=0.99, busy=True), "The machine was busy, so that says little"),
    (elsewhere(ratio=None, wall=None, walls=(), refused="it was ended there after 20 s"),
     "The gain on 3.13t is unknown: it was ended there after 20 s."),
])
def test_what_the_free_threaded_build_gives_is_said_and_doubted(there, said):
    found = replace(diagnosed(make_process()), elsewhere=there)
    lines = answer_lines(found)
    (gain,) = (text for text in lines if there.build in text and not text.startswith("do: "))
    assert said in gain
    faster = there.ratio is None or (min(there.walls) < 1 and there.ratio != 1.01)   # or not known to be none
    assert found.limit.what is Limiter.GIL
    # It does not blame the GIL where the program was not faster without it, and sends nobody there then.
    assert lines[0].startswith("The GIL limits it: " if faster else "No run without the GIL was shorter")
    clearly = there.ratio == 2.0 and not there.busy and max(there.walls) < 1
    assert bool(line(found, f"do: use {there.build}")) == clearly


def longer(process, **changes):
    """Return the process with the longest names that fit a line, and the worst that can be said of each."""
    names = (f"ThreadPoolExecutor-0_{letter}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
    threads = tuple(replace(thread, called=next(names)) for thread in process.threads)
    inner = {"file": "/usr/lib/python3.13/json/decoder_of_many_things.py", "line": 1361}
    caller = CodeLine("/home/me/a_module_with_a_long_name.py", 1234, "LongClassName.some_long_method")
    sites = tuple(site and replace(site, **inner, function="JSONDecoder.raw_decode_of_it", caller=caller)
                  for site in process.sites)
    return replace(process, threads=threads, sites=sites, **changes)


GAIN = elsewhere(build="3.14t", version="3.14.0", wall=2.0, walls=(0.9, 2.0, 2.1), ratio=0.5, busy=True)
STALLED = stalling((0.1, 0.22), (0.3, 0.42))


@pytest.mark.parametrize("process", [
    make_process(), longer(make_process()), convoy(), longer(convoy(20)), STALLED, longer(STALLED),
    longer(waiting(WaitReason.LOCK, 0.5)), longer(waiting(WaitReason.OBJECT, 0.5, free=True)),
    longer(STALLED, ended=False), longer(make_process(), threads_lost=3),
    longer(stalling((0.1, 0.5), (0.5, 0.7), run_queue=(0.8, 0.0)), threads_lost=3),
    longer(waiting(WaitReason.WORLD, 0.4, free=True, run_queue=0.6), threads_lost=3),
])
def test_answer_is_at_most_twelve_lines_and_begins_with_what_limits(process):
    found = replace(diagnosed(process), elsewhere=GAIN, queued_share=0.5)
    if not process.ended:
        unfinished = tuple(replace(thread, ended=False, unfinished=(kind, 0.1), unfinished_at=1)
                           for thread, kind in zip(process.threads, (SpanKind.WAIT, SpanKind.HOLD), strict=True))
        found = diagnosed(replace(process, threads=unfinished), ended=-9)
        assert found.last_seen
    told = render(answer_document(found)).splitlines()
    assert len(told) <= MOST_LINES, "\n".join(told)
    assert max(map(len, told)) <= 100
    assert any(word in told[not process.ended] for word in ("limits it", "without the GIL was shorter", "It "))
    assert told[-1].endswith("all of it: gilscope gil --full ...")


def hung(kind=SpanKind.PARK, seconds=5.0):
    """Return a program that was killed while one thread waited for another, and that for a lock."""
    threads = (make_thread(0, [], main=True, ended=False, unfinished=(SpanKind.IDLE, 0.1), unfinished_at=1),
               make_thread(1, [], ended=False, unfinished=(kind, 0.25), unfinished_at=1))
    return make_process(ended=False, seconds=seconds, threads=threads, sites=(None, make_site(3, thread=0)))


@pytest.mark.parametrize(("process", "says"), [
    (hung(), True),
    (hung(seconds=1.2), False),          # too short to tell
    (hung(SpanKind.HOLD), False),        # somebody works
])
def test_program_that_was_ended_while_all_its_threads_waited_hung(process, says):
    found = diagnosed(process, ended=-15)
    ending, first = answer_lines(found)[:2]
    assert ending == "SIGTERM ended it: waits count up to the last that is known."
    assert first.startswith("It hung: when it was ended, all of its threads had waited for 4.75 s") is says
    assert line(found, "do: take locks in one order").startswith("do:") is says


@pytest.mark.parametrize(("ended", "first"), [
    (3, "It ended with exit code 3, its own."),
    (-11, "It crashed (SIGSEGV): waits count up to the last that is known."),
    (-2, "SIGINT ended it: waits count up to the last that is known."), (0, "The GIL limits it: "),
])
def test_end_of_a_program_that_failed_comes_first(ended, first):
    found = diagnosed(make_process(), ended=ended)
    assert answer_lines(found)[0].startswith(first)
    assert bool(line(found, "do")) == (ended != -11)
    assert "The GIL limits it: " in "\n".join(answer_lines(found))


def test_program_that_failed_at_once_is_limited_by_nothing_that_is_known():
    def failed(seconds, queued=0.0):
        threads = (make_thread(0, [], main=True, cpu=seconds - queued, run_queue=queued, end=seconds),)
        return answer_lines(diagnosed(make_process(threads=threads, sites=(None,), seconds=seconds), ended=1))

    assert failed(0.1) == failed(2.0, 1.5) == ("It ended with exit code 1, its own.",)
    assert len(failed(2.0)) > 1


@pytest.mark.parametrize(("queued", "without"), [(0.3, Limiter.IO), (0.8, Limiter.CORES)])
@pytest.mark.parametrize("worker", [
    make_process(threads=(make_thread(0, [], main=True, cpu=None, run_queue=None),), sites=(None,), ended=False),
    make_process(threads=(), sites=(None,), ended=False),
])
def test_nothing_is_said_of_what_limits_a_program_whose_workers_were_killed(worker, queued, without):
    parent = make_process(threads=(make_thread(0, [], main=True, cpu=0.05, run_queue=queued),), sites=(None,))
    found = diagnosed(parent, worker)
    assert answer_lines(found) == (
        "What limits it is not known, as 1 process left no end: its work is missing.",
        "do: let its processes end by themselves, not by os._exit or a signal")
    assert diagnosed(parent).limit.what is without
