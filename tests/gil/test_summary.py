"""What recorded processes come to, and their trace."""

import json

import pytest

from gilscope.toolkit.gil.chrome import trace, write_trace
from gilscope.toolkit.gil.recorder import Recording, queued_share
from gilscope.toolkit.gil.records import (
    BadRecordError,
    CodeLine,
    SpanKind,
    SpanTotal,
    ThreadSpan,
    WaitReason,
    read,
    read_folder,
)
from gilscope.toolkit.gil.summary import summarize, thread_names
from tests.gil.recorded import make_process, make_site, make_thread
from tests.gil.traces import checked


def test_shares_are_of_thread_time_and_of_the_time_threads_wanted_to_run():
    summary = summarize([make_process()])
    assert summary.waited == pytest.approx(1.0)
    assert summary.held == pytest.approx(1.0)
    assert summary.share == pytest.approx(1.0 / 3)      # three threads of a second
    assert summary.wanted_share == pytest.approx(0.5)   # one of two runs
    assert (summary.waits, summary.failed, summary.requests, summary.handovers) == (10, 10, 10, 9)
    assert summary.longest == pytest.approx(0.1)
    assert summary.longest_thread == "thread 1: spin"


def test_spinning_is_contention():
    spins = [ThreadSpan(SpanKind.SPIN, 0.1, 0.4, 0, 0, 0, None, 0)]
    summary = summarize([make_process(threads=(make_thread(0, spins),))])
    assert (summary.spun, summary.spins) == (pytest.approx(0.3), 1)
    assert summary.blocked_share == pytest.approx(0.3)


def test_idle_is_not_contention():
    summary = summarize([make_process()])
    assert summary.idle == pytest.approx(0.9)
    assert summary.parked == pytest.approx(0.05)
    assert [(place.what, place.idle) for place in summary.places] == [
        ("the GIL", False), ("an event, a queue or a thread's end", True), ("a list", False)]


def test_places_of_several_processes_are_added_up():
    summary = summarize([make_process(), make_process(pid=7, started=5000.5)])
    assert summary.places[0].seconds == pytest.approx(2.0)
    assert summary.places[0].count == 20
    assert summary.wall == pytest.approx(1.5)
    assert len(summary.threads) == 6


def test_overhead_follows_what_was_recorded():
    process = make_process()
    summary = summarize([process])
    spans = sum(len(thread.spans) for thread in process.threads)
    expected = spans * 5e-8 + 20 * 2e-8 + 3e-6 + 12 * 12e-9
    assert summary.overhead == pytest.approx(expected)
    assert summary.overhead_share == pytest.approx(expected / 1.5)


def test_killed_processes_have_no_cpu_time():
    threads = tuple(make_thread(number, [], cpu=None, run_queue=None, voluntary=None) for number in range(2))
    summary = summarize([make_process(threads=threads, ended=False)])
    assert (summary.cpu, summary.overhead_share, summary.context_switches, summary.killed) == (None, None, None, 1)


BUSY = {SpanKind.WAIT: SpanTotal(5, 0.5, 0.3, 0.0), SpanKind.HOLD: SpanTotal(7, 0.25, 0.1, 0.0),
        SpanKind.SWITCH: SpanTotal(2, 0.25, 0.2, 0.0), SpanKind.PARK: SpanTotal(11, 0.6, 0.2, 0.0),
        SpanKind.IDLE: SpanTotal(13, 0.05, 0.01, 0.0), SpanKind.SPIN: SpanTotal(17, 0.4, 0.1, 0.0)}


def test_every_number_of_a_thread_is_its_own():
    busy = make_thread(1, [], end=4.0, totals=BUSY, attempts=9, timeouts=3, handovers=6, voluntary=8, involuntary=4,
                       yields=19, cpu=1.0, run_queue=0.125, sampling=0.5, acquired=1000)
    other = make_thread(2, [], voluntary=None, involuntary=None, cpu=None, run_queue=None)
    process = make_process(threads=(busy, other), clock_cost=1.0, hold_cost=100.0)
    summary = summarize([process, make_process(threads=())])
    (row, _) = summary.threads
    assert (row.waited, row.waits, row.longest, row.failed, row.requests, row.handovers, row.held, row.handing_over,
            row.parked, row.parks, row.spun, row.spins, row.yields, row.idle, row.cpu, row.run_queue, row.switches) == (
        0.5, 5, 0.3, 4, 3, 6, 0.25, 0.25, 0.6, 11, 0.4, 17, 19, 0.05, 1.0, 0.125, 12)
    assert (summary.wanted_share, summary.blocked_share) == (0.5, pytest.approx(0.2))   # of 4 s and 1 s of threads
    assert summary.system_calls == 9 + 5 + 2 * (2 + 11 + 13) + 19   # tries, wake-ups, sleeps and their ends, yields
    assert summary.overhead == pytest.approx(55 * 100 + (9 + 2 * 19) + 0.5 + 1e-6 + 1004 * 12e-9)
    assert (summary.cpu, summary.run_queue, summary.context_switches) == (1.0, 0.125, 12)
    assert summary.at_once == 2   # of one that was killed, that it ran something is all that is known


def test_process_without_threads_has_no_shares():
    nothing = summarize([make_process(threads=(), sites=())])
    assert (nothing.share, nothing.wanted_share, nothing.blocked_share, nothing.longest_thread) == (0.0, 0.0, 0.0, "")


def test_one_process_whose_frames_cannot_be_read_leaves_places_out():
    assert not summarize([make_process(), make_process(sites_known=False)]).sites_known


def test_places_of_objects_of_unknown_type_and_the_longest_wait_of_several():
    sites = [(make_site(5, WaitReason.OBJECT, parked=SpanTotal(1, seconds, seconds, 0.0)),) for seconds in (0.1, 0.3)]
    (place,) = summarize([make_process(sites=each) for each in sites]).places
    assert (place.what, place.count, place.longest) == ("an object", 2, 0.3)


def test_names_are_pythons_own_or_what_the_thread_runs():
    threads = (make_thread(0, [], main=True), make_thread(1, []), make_thread(2, [], name="Thread-2 (feed)"),
               make_thread(3, [], entry=""), make_thread(4, [], called="worker-in-a-pool_4"),
               make_thread(5, [], called="worker-in-a-pool_5", name="worker-in-a-po\N{REPLACEMENT CHARACTER}"),
               make_thread(6, [], called="Thread-6", name="renamed"))
    assert thread_names(make_process(threads=threads)) == [
        "main", "thread 1: spin", "Thread-2 (feed)", "thread 3", "worker-in-a-pool_4", "worker-in-a-pool_5", "renamed"]


def test_each_thread_has_its_own_places_and_all_together_are_added_up():
    summary = summarize([make_process()])
    assert [(place.thread, place.seconds) for place in summary.places][:1] == [(None, 1.0)]
    assert [(place.thread, place.line, place.seconds) for place in summary.thread_places] == [
        ("main", 9, 0.9), ("thread 1: spin", 5, 0.5), ("thread 2: spin", 5, 0.5), ("main", 7, 0.05)]
    several = summarize([make_process(), make_process(pid=7)]).thread_places
    assert [place.thread for place in several][:2] == ["100 main", "7 main"]


def test_trace_has_every_span_under_its_threads_name():
    events = checked(trace([make_process()]))
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {100: "main", 101: "thread 1: spin", 102: "thread 2: spin"}
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == 23
    between = spans[-1]   # of main, the rest of its second
    assert (between["name"], between["tid"], between["ts"], between["dur"]) == (
        "without the GIL: C code or a system call", 100, 950000.0, 50000.0)
    first = next(event for event in spans if event["name"] == "waits for the GIL")
    assert first == {
        "name": "waits for the GIL", "cat": "wait", "ph": "X", "pid": 100, "tid": 102, "ts": 0.0, "dur": 100000.0,
        "args": {"at": "/home/me/program.py:5 in spin", "attempts": 2, "requests": 1, "holder": 101}}
    hold = next(event for event in spans if event["name"] == "holds the GIL")
    assert hold["args"] == {"at": "/home/me/program.py:6 in spin"}
    parked = next(event for event in spans if event["name"] == "parked")
    assert parked["args"] == {"at": "/home/me/program.py:7 in add", "on": "list"}


def test_trace_has_the_programs_line_and_where_in_a_library_it_led():
    caller = CodeLine("/home/me/program.py", 9, "work")
    site = make_site(361, file="/usr/lib/python3.13/json/decoder.py", function="scan", caller=caller)
    threads = (make_thread(0, [ThreadSpan(SpanKind.WAIT, 0.0, 1.0, 1, 0, 0, None, 0)], main=True),)
    (wait,) = (event for event in checked(trace([make_process(threads=threads, sites=(None, site))]))
               if event["ph"] == "X")
    assert (wait["args"]["at"], wait["args"]["inside"]) == (
        "/home/me/program.py:9 in work", "/usr/lib/python3.13/json/decoder.py:361 in scan")


def test_contention_is_told_apart_by_what_threads_waited_for():
    reasons = (WaitReason.LOCK, WaitReason.RAW, WaitReason.OBJECT, WaitReason.WORLD)
    sites = (None, *(make_site(5, reason, parked=SpanTotal(1, 0.1 * place, 0.1, 0.0))
                     for place, reason in enumerate(reasons, 1)),
             make_site(9, WaitReason.OBJECT, idle=True, parked=SpanTotal(1, 9.0, 9.0, 0.0)))
    totals = {**make_thread(1, []).totals, SpanKind.PARK: SpanTotal(4, 1.0, 0.4, 0.0)}
    threads = (make_thread(0, [], main=True), make_thread(1, [], totals=totals))
    summary = summarize([make_process(threads=threads, sites=sites)])
    assert (summary.parked, summary.on_locks, summary.on_objects, summary.paused) == pytest.approx((1.0, 0.3, 0.3, 0.4))
    assert [row.on_objects for row in summary.threads] == pytest.approx([0.0, 0.3])


def test_trace_without_a_gil_draws_none_and_what_runs():
    importing = [ThreadSpan(SpanKind.HOLD, 0.1, 0.2, 0, 0, 0, None, 0),
                 ThreadSpan(SpanKind.PARK, 0.5, 0.6, 0, 0, 0, None, 0)]
    threads = (make_thread(0, importing, main=True, acquired=9), make_thread(1, [], acquired=0))
    process = make_process(threads=threads, free_threaded=True, gil_used=False)
    spans = [event for event in checked(trace([process])) if event["ph"] == "X"]
    runs = "runs, or is in a system call"
    assert [(event["tid"], event["name"], event["ts"] / 1e6, event["dur"] / 1e6) for event in spans] == [
        (101, runs, 0.0, 1.0), (100, runs, 0.0, 0.5), (100, "parked", 0.5, pytest.approx(0.1)),
        (100, runs, 0.6, pytest.approx(0.4))]


def test_trace_says_nothing_of_a_time_whose_spans_are_lost():
    kept = [ThreadSpan(SpanKind.WAIT, 0.5, 0.75, 0, 1, 0, None, 0)]
    process = make_process(threads=(make_thread(1, kept, spans_lost=9),), all_holds=False)
    spans = [event for event in checked(trace([process])) if event["ph"] == "X"]
    assert [(event["name"], event["ts"]) for event in spans] == [("waits for the GIL", 5e5), ("does not wait", 7.5e5)]


def test_trace_of_several_processes_has_one_clock(tmp_path):
    path = tmp_path / "trace.json"
    write_trace([make_process(), make_process(pid=7, started=5000.5)], path)
    events = checked(json.loads(path.read_text()))
    assert min(event["ts"] for event in events if event["ph"] == "X" and event["pid"] == 7) == pytest.approx(5e5)


def test_trace_is_cut_to_its_window():
    spans = [event for event in checked(trace([make_process()], (0.35, 0.45))) if event["ph"] == "X"]
    assert {event["tid"] for event in spans} == {100, 101, 102}
    assert len(spans) == 5      # two turns of two threads, and main's idling


def test_window_is_on_the_clock_of_all_processes():
    later = make_process(pid=7, started=5000.5)
    spans = [event for event in checked(trace([make_process(), later], (1.2, 1.25))) if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == {7}


def test_trace_names_processes_and_other_gils_and_nobody_as_holder_of_what_a_thread_held_itself():
    waits = [ThreadSpan(SpanKind.WAIT, turn, turn + 0.1, 0, 1, 0, holder, turn) for turn, holder in enumerate((1, 9))]
    process = make_process(threads=(make_thread(1, waits),), free_threaded=True, version="3.14.0")
    events = checked(trace([process]))
    assert next(event["args"]["name"] for event in events if event["name"] == "process_name") == (
        "Python 3.14.0t: python program.py")
    assert [event["args"] for event in events if event.get("cat") == "wait"] == [
        {"attempts": 1, "requests": 0}, {"attempts": 1, "requests": 0, "gil": 1}]


@pytest.mark.parametrize(("content", "words"), [
    (b"something else" * 300000, "was not written by"), (b"gilscope", "was not written by"),
    (b"gilscope" + (99).to_bytes(4, "little") + bytes(7_000_000), "format 99"),
])
def test_foreign_files_are_refused(tmp_path, content, words):
    path = tmp_path / "1-2.gil"
    path.write_bytes(content)
    with pytest.raises(BadRecordError, match=words):
        read(path)


def test_process_killed_at_its_start_has_left_nothing(tmp_path):
    (tmp_path / "1-2.gil").write_bytes(bytes(4096))
    (tmp_path / "other.txt").write_text("not ours")
    assert read_folder(tmp_path) == []


@pytest.mark.parametrize(("spans", "most"), [
    ([(0.0, 1.0), (0.5, 0.8), (0.8, 1.0)], 2), ([], 0), ([(0.0, 0.5), (0.2, 0.6), (0.3, 1.0)], 3)])
def test_threads_at_the_same_time(spans, most):
    threads = [make_thread(number, [], start=start, end=end) for number, (start, end) in enumerate(spans, 1)]
    idle = make_thread(9, [], cpu=0.0001)
    process = make_process(threads=(make_thread(0, [], main=True), idle, *threads))
    assert summarize([process]).at_once == most


@pytest.mark.parametrize("ended", [True, False])
def test_of_a_process_without_an_end_there_are_no_shares_of_its_cpu_time(ended):
    # Its threads that ended told theirs; what the others took is not in it.
    threads = (make_thread(0, [], main=True, ended=ended, cpu=0.5 if ended else None), make_thread(1, []))
    processes = (make_process(ended=ended, threads=threads),)
    assert summarize(processes).cpu is not None
    assert (summarize(processes).overhead_share is not None) == ended
    assert (queued_share(Recording(ended=0, wall=1.0, cpu=1.0, processes=processes)) is not None) == ended
