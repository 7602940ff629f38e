"""The shim, against programs whose waits are known by how they are made."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.gil import preload, records
from gilscope.toolkit.gil.chrome import trace
from gilscope.toolkit.gil.records import SpanKind, WaitReason
from gilscope.toolkit.gil.summary import summarize
from tests.gil import programs
from tests.gil.traces import checked
from tests.patience import PATIENCE

WITH_GIL, FREE, BOTH = (pytest.mark.builds(*kinds) for kinds in (["gil"], ["free"], ["gil", "free"]))
RUNNING = {SpanKind.WAIT, SpanKind.HOLD, SpanKind.SWITCH}


def all_seconds(thread):
    return sum(total.seconds for total in thread.totals.values())


def outside(thread):
    """Return the seconds of a thread's life that are in no span."""
    return thread.seconds - all_seconds(thread)


def spans_between(recorded, thread, begin, end, *kinds):
    """Return a thread's spans of these kinds from one nanosecond of the program's clock to another."""
    return [span for span in thread.spans
            if span.kind in kinds and begin <= recorded.begun + 1e9 * span.begin
            and recorded.begun + 1e9 * span.end <= end]


def was_parked(spans):
    """Return True if the thread was parked in the end: on a busy machine its few yields may take until its turn."""
    return any(span.kind is SpanKind.PARK for span in spans)


def wait_at(recorded, nanosecond):
    """Return the one wait of the asker at that time of the program's clock, or None."""
    moment = (nanosecond - recorded.begun) / 1e9
    waits = [span for span in recorded.thread("asker").spans
             if span.kind is SpanKind.WAIT and span.begin <= moment <= span.end]
    assert len(waits) < 2
    return waits[0] if waits else None


@WITH_GIL
def test_wait_is_as_long_as_the_call_that_keeps_the_gil(record_until):
    def waited_all_along(recorded):    # the asker may get its core only after the call, or lose it before it waits
        begin, asked, end, _ = recorded.numbers
        wait = wait_at(recorded, end)
        early = end - max(begin, asked) > 0.5 * (end - begin)
        return early and wait is not None and 1e9 * wait.seconds > 0.9 * (end - asked)

    recorded = record_until(programs.HELD.format(count=1e7), waited_all_along)
    _, asked, end, got = recorded.numbers
    wait = wait_at(recorded, end)
    # It has the GIL back after the call, before it reads the clock again; and has wanted it since it read the first.
    assert asked <= recorded.begun + 1e9 * wait.begin
    assert recorded.begun + 1e9 * wait.end <= got
    assert recorded.thread("asker").totals[SpanKind.WAIT].longest > 0.99 * wait.seconds


@WITH_GIL
@pytest.mark.parametrize("count", [2, 4])
def test_all_time_of_cpu_threads_is_accounted_for(count, record_until):
    def spinning(recorded):
        return [each for each in recorded.process.threads if each.entry == "spin"]

    def complete(recorded):     # but for having no CPU between two spans, and a hypervisor that takes all CPUs away
        return all(outside(each) <= 0.1 * each.seconds + (each.run_queue or 0.0) for each in spinning(recorded))

    recorded = record_until(programs.SPIN, complete, str(count))
    threads = spinning(recorded)
    assert len(threads) == count
    assert all(outside(each) >= 0 for each in threads)
    # One runs, so of N threads N - 1 wait, for the GIL, for it to be handed over, or for all to have begun.
    both = min(each.end for each in threads) - max(each.start for each in threads)
    waited = sum(all_seconds(each) - each.totals[SpanKind.HOLD].seconds for each in threads)
    assert waited >= (count - 1) * both - sum(map(outside, threads))
    # And one of them for the switch interval at least, before each of the 40 turns.
    assert sum(each.totals[SpanKind.WAIT].seconds for each in threads) > 0.1


@WITH_GIL
def test_one_thread_at_a_time_holds_the_gil(record):
    process = record(programs.SPIN, "3").process
    holds = sorted((span.begin, span.end) for thread in process.threads for span in thread.spans
                   if span.kind is SpanKind.HOLD)
    assert len(holds) > 10    # of 40 turns
    assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(holds))


@BOTH
def test_spans_of_a_thread_do_not_cross_and_sum_up_to_its_totals(record_once):
    process = record_once(programs.SPIN, "2").process
    events = [event for event in checked(trace([process])) if event["ph"] == "X"]
    assert ("holds the GIL" in {event["name"] for event in events}) is (not process.free_threaded)
    for thread in process.threads:
        assert len(thread.spans) + thread.spans_lost == sum(total.count for total in thread.totals.values())
        for kind in SpanKind if not thread.spans_lost else ():   # 3.15t: the two may yield ten thousands of times
            spans = [span for span in thread.spans if span.kind is kind]
            assert len(spans) == thread.totals[kind].count
            assert sum(span.seconds for span in spans) == pytest.approx(thread.totals[kind].seconds)
        running = [span for span in thread.spans if span.kind in RUNNING]
        assert all(earlier.end <= later.begin for earlier, later in itertools.pairwise(running))
        assert thread.start <= min((span.begin for span in thread.spans), default=thread.start)
        assert max((span.end for span in thread.spans), default=thread.end) <= thread.end
    if not process.free_threaded:
        assert not any(thread.spans_lost for thread in process.threads)


@BOTH
def test_sleeping_threads_do_not_wait(record_once):
    process = record_once(programs.SLEEP).process
    sleepers = [each for each in process.threads if not each.main]
    assert len(sleepers) == 4
    for thread in sleepers:     # each sleeps for 0.3 s at least: what comes before and after takes as long as it takes
        contended = sum(thread.totals[kind].seconds for kind in (SpanKind.WAIT, SpanKind.PARK, SpanKind.SPIN))
        assert contended <= thread.seconds - 0.3


@WITH_GIL
def test_waits_know_their_place_and_who_made_them_wait(record_once):
    process = record_once(programs.SPIN, "2").process
    if not process.sites_known:
        pytest.skip("frames of this version are not read")
    spinning = [site for site in process.sites if site and site.function == "spin" and site.waited.count]
    assert {site.line for site in spinning} <= programs.SPIN_LINES
    assert {Path(site.file).name for site in spinning} == {"program.py"}
    first, second = (each for each in process.threads if each.entry == "spin")
    holders = [span.holder for span in first.spans if span.kind is SpanKind.WAIT]
    assert second.number in holders
    assert first.number not in holders
    sums = sum(site.waited.seconds for site in process.sites if site)
    known = sum(span.seconds for thread in process.threads for span in thread.spans
                if span.kind is SpanKind.WAIT and span.site)
    assert sums == pytest.approx(known)


@BOTH
def test_names_that_are_not_ascii_are_read(record):
    source = programs.REFUSED.replace("asker", "frager\u00e9_\u4f60")
    process = record(source, name="caf\u00e9/progr\u00e4mm_\U0001f40d.py").process
    if not process.sites_known:
        pytest.skip("frames of this version are not read")
    functions = {site.function: site.file for site in process.sites if site}
    assert functions["frager\u00e9_\u4f60"].endswith("/caf\u00e9/progr\u00e4mm_\U0001f40d.py")


def sites_of(recorded):
    """Return the sites of waits by the name of their function; the last one of each."""
    return {site.function: site for site in recorded.process.sites if site and site.waited.count}


@WITH_GIL
def test_code_at_the_address_of_another_files_is_not_taken_for_it(record_until):
    def waited_in_both(recorded):    # the spinning main thread may have no core meanwhile
        return not recorded.process.sites_known or {"of_package", "of_program"} <= {*sites_of(recorded)}

    recorded = record_until(programs.REUSED, waited_in_both)
    if not recorded.process.sites_known:
        pytest.skip("frames of this version are not read")
    assert recorded.out == "True\n", "the address of the first file's name was not used again"
    sites = sites_of(recorded)
    assert sites["of_package"].file == "/aa/site-packages/module.py"
    assert sites["of_package"].caller.function == "call"
    assert sites["of_program"].file == "/aa/of_my_program/module.py"
    assert sites["of_program"].caller is None


@WITH_GIL
def test_line_in_a_long_function_is_found(record_until):
    def waited_there(recorded):      # likewise
        return not recorded.process.sites_known or "long" in sites_of(recorded)

    recorded = record_until(programs.LONG_FUNCTION, waited_there)
    if not recorded.process.sites_known:
        pytest.skip("frames of this version are not read")
    (size,) = recorded.numbers
    assert size > 16384
    assert sites_of(recorded)["long"].line in {3002, 3003}


@FREE
def test_waiting_for_a_threads_start_is_idle_also_where_it_only_spins(record):
    process = record(programs.STARTS).process
    waits = [site for site in process.sites if site and site.function == "Condition.wait"]
    assert waits or not process.sites_known
    assert all(site.idle for site in waits)
    spans = [span for thread in process.threads for span in thread.spans if span.site]
    assert {span.kind for span in spans if process.sites[span.site] in waits} <= {SpanKind.IDLE}


@FREE
def test_to_spin_inside_a_wait_for_an_event_is_idle(record):
    process = record(programs.EVENTS).process
    if not process.sites_known:
        pytest.skip("frames of this version are not read")
    waits = [site for site in process.sites if site and site.own.line == programs.EVENTS_LINE]
    assert {site.function for site in waits} >= {"Condition.wait"}
    assert [site for site in waits if site.reason is WaitReason.SPIN and not site.idle] == []


@BOTH
def test_to_wait_for_an_item_of_a_queue_is_idle(record):
    recorded = record(programs.SIMPLE_QUEUE)
    if recorded.process.version.startswith("3.12") and recorded.out == "True\n":
        pytest.skip("this queue cannot be told from a lock")
    waits = [site for site in recorded.process.sites if site and site.function == "consume" and site.parked.count]
    assert [site for site in waits if site.reason is WaitReason.LOCK and not site.idle] == []


@WITH_GIL
def test_main_thread_is_named_by_its_own_line(record_once):
    process = record_once(programs.SPIN, "2").process
    if not process.sites_known:
        pytest.skip("frames of this version are not read")
    (main,) = (thread for thread in process.threads if thread.main)
    sites = [site for site in process.sites if site and site.thread == main.number]
    joins = [site for site in sites if site.idle]
    assert joins
    assert {Path(site.own.file).name for site in joins} == {"program.py"}
    assert {Path(site.file).name for site in joins} == {"threading.py"}


@BOTH
def test_threads_have_the_names_that_threading_knows(record):
    recorded = record(programs.NAMED)
    if not recorded.process.sites_known:
        pytest.skip("this version's frames cannot be read")
    called = sorted(thread.called for thread in recorded.process.threads)
    assert called == sorted(["", "", "Z\u00e4hler, dessen Name lang ist, 1", recorded.out.strip(), "x" * 127,
                             "pool of one_0"])   # the main one has none, nor has what was not started by threading


@BOTH
def test_place_is_of_the_thread_that_waited_there(record_once):
    process = record_once(programs.SPIN, "2").process
    if not process.sites_known:
        pytest.skip("this version's frames cannot be read")
    for thread in process.threads:
        there = [site for site in process.sites if site and site.thread == thread.number]
        waited = [span for span in thread.spans if span.kind is SpanKind.WAIT]
        assert not process.sites_lost
        assert sum(site.waited.count for site in there) == sum(1 for span in waited if span.site)
        assert all(process.sites[span.site] in there for span in thread.spans if span.site)


@BOTH
def test_parked_time_on_a_lock_is_as_long_as_it_was_held(record_until):
    def parked_all_along(recorded):    # but for what a main thread that sleeps briefly takes of it
        begin, released, end = recorded.numbers
        spans = spans_between(
            recorded, recorded.thread("asker"), begin, end,
            SpanKind.PARK, SpanKind.SPIN, SpanKind.WAIT, SpanKind.SWITCH)
        return was_parked(spans) and 1e9 * sum(span.seconds for span in spans) > 0.9 * (released - begin)

    recorded = record_until(programs.LOCK, parked_all_along)
    begin, released, _ = recorded.numbers
    assert released - begin >= 0.3e9
    (site,) = (each for each in recorded.process.sites
               if each and each.function == "asker" and each.parked.count and each.reason is not WaitReason.SPIN)
    assert (site.reason, site.idle, site.line) == (WaitReason.LOCK, False, programs.LOCK_LINE)


@BOTH
def test_join_is_idle_not_contention(record_until):
    def idle(recorded):
        (main,) = (each for each in recorded.process.threads if each.main)
        begin, end = recorded.numbers
        joining = spans_between(recorded, main, begin, end, SpanKind.IDLE)
        return max((span.seconds for span in joining), default=0.0)

    def joins_for_long(recorded):    # the main thread may get its core only when the others have slept
        return idle(recorded) > 0.1

    recorded = record_until(programs.SLEEP, joins_for_long)
    assert any(site.idle and site.parked.seconds > 0.1 for site in recorded.process.sites if site)


@FREE
def test_critical_section_names_the_type_of_its_object(record_until):
    def asked(recorded):
        begin, end = recorded.numbers
        return end - begin

    def blocked_all_along(recorded):    # the appender may get its core only after the sort
        spans = spans_between(recorded, recorded.thread("appender"), *recorded.numbers, SpanKind.PARK, SpanKind.SPIN)
        blocked = 1e9 * sum(span.seconds for span in spans)
        return was_parked(spans) and asked(recorded) > 1e7 and blocked > 0.9 * asked(recorded)

    recorded = record_until(programs.SORT, blocked_all_along)
    (site,) = (each for each in recorded.process.sites
               if each and each.function == "appender" and each.reason is WaitReason.OBJECT)
    assert (site.reason, site.on, site.idle) == (WaitReason.OBJECT, "list", False)


@FREE
def test_free_threaded_build_with_its_gil_on_waits_for_it(record, record_once):
    process = record(programs.SPIN, "2", PYTHON_GIL="1").process
    assert process.free_threaded
    waited = [each.totals[SpanKind.WAIT].seconds for each in process.threads if each.entry == "spin"]
    assert min(waited) > 0.02     # the switch interval at least, before each of its 20 turns
    assert process.gil_used
    off = record_once(programs.SPIN, "2").process
    assert not off.gil_used
    assert all(not each.totals[SpanKind.WAIT].count for each in off.threads)


@FREE
def test_imports_of_extension_modules_turn_no_gil_on(record):
    process = record(programs.IMPORTING).process
    importing = [thread for thread in process.threads if not thread.main]
    assert all(thread.acquired for thread in importing)     # each has one for a moment
    assert not process.gil_used
    assert "holds the GIL" not in {event["name"] for event in trace([process])["traceEvents"]}


@BOTH
def test_killed_process_leaves_what_it_has(record):
    recorded = record(programs.KILLED, ended=-9)
    process, (turns_took,) = recorded.process, recorded.numbers
    assert not process.ended
    assert process.gil_used is not process.free_threaded
    spinning = [each for each in process.threads if not each.main]
    assert len(spinning) == 2
    if not process.free_threaded:
        assert turns_took < process.seconds < recorded.lasted
        assert min(each.totals[SpanKind.WAIT].count for each in spinning) > 2
        assert {each.unfinished[0] for each in spinning if each.unfinished} <= RUNNING
    assert all(each.cpu is None and not each.ended for each in spinning)
    # Who started it knows when it ended: what its threads did last went on until then.
    (later,) = records.read_folder(recorded.folder, until=recorded.begun + 10**12)
    assert later.seconds == pytest.approx(1000.0)


@BOTH
@pytest.mark.parametrize(("number", "known"), [(signal.SIGTERM, True), (signal.SIGKILL, True), (0, False)])
def test_who_kills_a_process_records_its_cpu_time(record, number, known):
    recorded = record(programs.KILLER, str(int(number)))
    (pid,) = map(int, recorded.out.split())
    (child,) = (process for process in recorded.processes if process.pid == pid)
    assert not child.ended
    (thread,) = child.threads
    assert (thread.cpu is not None, thread.run_queue is not None) == (known, known)
    assert summarize(recorded.processes).killed == (not known)
    if known:
        # The kernel counts a running thread's CPU time at ticks, of 10 ms at most.
        assert 0 < thread.cpu <= child.seconds + 0.01
        assert child.seconds == pytest.approx(thread.end)


@BOTH
def test_forked_child_has_its_own_file(record):
    recorded = record(programs.FORKED)
    parent, child = map(int, recorded.out.split())
    by_pid = {process.pid: process for process in recorded.processes}
    assert by_pid.keys() == {parent, child}
    assert by_pid[child].forked
    assert by_pid[child].parent == parent
    assert not by_pid[parent].forked
    for process in by_pid.values():
        assert [each.main for each in process.threads].count(True) == 1
        assert len(process.threads) == 3
        assert process.ended


@WITH_GIL
def test_interpreter_with_its_own_gil_is_covered(record):
    process = record(programs.OWN_GIL).process
    spinning = [each for each in process.threads if not each.main]
    assert len(spinning) == 2
    assert all(each.totals[SpanKind.WAIT].seconds > 0.05 for each in spinning)
    assert {span.gil for each in spinning for span in each.spans if span.kind is SpanKind.WAIT} == {1}
    assert not process.gils_lost


@BOTH
def test_memory_is_bounded_and_totals_stay_exact(record):
    recorded = record(programs.MANY, GILSCOPE_GIL_CHUNKS="2")
    (main,), (last,) = recorded.process.threads, recorded.numbers
    assert main.totals[SpanKind.PARK].count >= programs.MANY_TIMES
    assert len(main.spans) <= 2 * 255
    assert len(main.spans) + main.spans_lost == sum(total.count for total in main.totals.values())
    ends = [span.end for span in main.spans]
    assert ends == sorted(ends)
    latest = [span for span in main.spans if recorded.begun + 1e9 * span.begin >= last]    # the latest are kept
    assert SpanKind.PARK in {span.kind for span in latest}


@WITH_GIL
def test_holds_that_nobody_waits_for_are_counted_not_timed(record):
    (main,) = record(programs.ALONE).process.threads
    assert main.acquired == main.acquired_free > 5000
    assert not main.spans
    everything = record(programs.ALONE, into="all", GILSCOPE_GIL_ALL="1").process.threads[0]
    assert everything.totals[SpanKind.HOLD].count in {everything.acquired - 1, everything.acquired}


@BOTH
def test_recording_begins_and_ends_when_the_program_says_so(record, tmp_path):
    folder = tmp_path / "records"
    recorded = record(programs.CHOSEN, str(folder), **{preload.VARIABLE: ""})
    error, most = recorded.out.split()
    assert error == "0"
    assert recorded.process.ended
    assert recorded.process.seconds < float(most)
    assert len(recorded.process.threads) == 3


@BOTH
def test_forked_child_leaves_its_parents_file_alone(record, tmp_path):
    recorded = record(programs.CHOSEN_FORK, str(tmp_path / "records"), **{preload.VARIABLE: ""})
    assert len(recorded.process.threads) == 1


@BOTH
def test_programs_that_are_no_python_leave_nothing(record):
    recorded = record("import subprocess; subprocess.run(['sh', '-c', 'true'], check=True)")
    assert len(recorded.processes) == 1


@BOTH
def test_program_behaves_as_without_the_shim(record, tmp_path):
    source = "import threading, sys; print(threading.active_count(), sys.argv[1:]); sys.exit(7)"
    assert record(source, "a", "b", ended=7).out == "1 ['a', 'b']\n"


def test_small_limit_on_files_is_no_end_of_the_program(tmp_path):
    if reason := preload.unavailable():
        pytest.skip(reason)
    code = ("import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, 1000000));"
            "os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])")
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **preload.environment(str(tmp_path))},
                          capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "1\n")
