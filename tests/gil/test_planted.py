"""The holder is named, thread and line, in programs that each have one planted."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.gil.answer import answer_lines
from gilscope.toolkit.gil.bottleneck import Limiter
from gilscope.toolkit.gil.diagnosis import diagnose
from gilscope.toolkit.gil.holders import worst_stall
from gilscope.toolkit.gil.recorder import Recording
from tests.gil import planted

FAST = {"json", "loop in main"}     # one in C, below a library's Python; one in Python
CASES = [pytest.param(name, id=name, marks=() if name in FAST else pytest.mark.slow) for name in planted.PROGRAMS]


def diagnosed(processes):
    return diagnose(["program.py"], Recording(ended=0, wall=1.0, cpu=1.0, processes=tuple(processes)))


def with_cores(process):
    """Return the recording as if its threads had not waited for cores: that may be longer than for the GIL."""
    return replace(process, threads=tuple(replace(thread, run_queue=0.0) for thread in process.threads))


@pytest.mark.builds("gil")
@pytest.mark.parametrize("name", CASES)
def test_planted_holder_is_named(record_until, name):
    source, holder, lines = planted.source_of(name)

    def named_the_holder(recorded):     # a thread may lose its core while it has the GIL, anywhere
        if not recorded.process.sites_known:
            return True
        found = diagnosed(recorded.processes)
        return found.holders[0].thread == holder and found.longest_holds[0].line in lines

    recorded = record_until(source, named_the_holder)
    if not recorded.process.sites_known:
        pytest.skip("frames of this version are not read")
    found = diagnosed(map(with_cores, recorded.processes))
    worst = found.holders[0]
    assert (worst.thread, Path(worst.file).name) == (holder, "program.py")
    assert worst.line in lines
    assert "asker" in {waiting.thread for waiting in worst.waiting}
    longest = found.longest_holds[0]
    assert (longest.thread, longest.line in lines) == (holder, True)
    assert (found.limit.what, found.limit.thread) == (Limiter.GIL, holder)
    assert any(line.startswith("held by: ") and f"program.py:{worst.line}" in line for line in answer_lines(found))


@pytest.mark.builds("gil", "free")
def test_call_that_keeps_the_gil_stalls_the_others_where_there_is_one(record_until, build):
    source, _, (line,) = planted.source_of("foreign call that keeps it")

    def told(recorded):
        return build.free_threaded or not recorded.process.sites_known or bool(worst_stall(recorded.processes))

    recorded = record_until(source, told)
    answer = "\n".join(answer_lines(diagnosed(map(with_cores, recorded.processes))))
    if build.free_threaded:
        assert "stall" not in answer
    elif recorded.process.sites_known:
        said = rf"longest stall: (asker|main), [\d.]+ m?s, while holder had the GIL at program\.py:{line} hold$"
        assert re.search(said, answer, re.MULTILINE), answer


@pytest.mark.builds("gil", "free")
def test_thread_that_stops_all_others_is_named_where_there_is_no_gil(record_until, build):
    def told(recorded):
        none = not build.free_threaded or not recorded.process.sites_known
        return none or bool(diagnosed(recorded.processes).stoppers)

    recorded = record_until(planted.PAUSES, told)
    found = diagnosed(recorded.processes)
    if not build.free_threaded:
        assert not found.stoppers
    elif recorded.process.sites_known:
        worst = found.stoppers[0]
        assert worst.thread == "collect"
        assert "# here" in planted.PAUSES.splitlines()[worst.place.line - 1]
        assert 0 < worst.longest <= worst.seconds <= found.summary.paused + 1e-6     # sums of floats
        assert not found.holders or worst.place.line not in {holder.line for holder in found.holders}


@pytest.mark.builds("gil")
def test_threads_that_give_the_gil_away_for_a_lock_are_no_convoy(record):
    assert not diagnosed(record(planted.LOCKED).processes).convoys


@pytest.mark.slow
@pytest.mark.builds("gil")
def test_io_beside_a_thread_that_computes_is_a_convoy(record):
    found = diagnosed(record(planted.CONVOY).processes)
    assert {convoy.thread for convoy in found.convoys} == {"send", "answer"}
    for convoy in found.convoys:
        assert convoy.interval == 0.005
        assert convoy.cost == convoy.waits * convoy.interval <= convoy.waited / 0.8
        assert convoy.holder.thread == "compute"
