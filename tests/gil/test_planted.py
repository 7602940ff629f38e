"""The holder is named, thread and line, in programs that each have one planted."""

from pathlib import Path

import pytest

from gilscope.toolkit.gil.bottleneck import Limiter
from gilscope.toolkit.gil.diagnosis import diagnose
from gilscope.toolkit.gil.recorder import Recording
from tests.conformance.builds import is_free_threaded
from tests.gil import planted
from tests.gil.conftest import BUILDS

WITH_GIL = [label for label, python in BUILDS.items() if not is_free_threaded(python)]
FAST = {"json", "loop in main"}     # one in C, below a library's Python; one in Python
CASES = [pytest.param(name, id=name, marks=() if name in FAST else pytest.mark.slow) for name in planted.PROGRAMS]


def diagnosed(recorded):
    return diagnose(["program.py"], Recording(ended=0, wall=1.0, cpu=1.0, processes=tuple(recorded.processes)))


@pytest.mark.parametrize("label", WITH_GIL)
@pytest.mark.parametrize("name", CASES)
def test_planted_holder_is_named(record, label, name):
    source, holder, lines = planted.source_of(name)
    recorded = record(label, source)
    if not recorded.process.sites_known:
        pytest.skip("frames of this version are not read")
    found = diagnosed(recorded)
    worst = found.holders[0]
    assert (worst.thread, Path(worst.file).name) == (holder, "program.py")
    assert worst.line in lines
    assert "asker" in {waiting.thread for waiting in worst.waiting}
    longest = found.longest_holds[0]
    assert (longest.thread, longest.line in lines) == (holder, True)
    if found.limit.what is Limiter.CORES:
        pytest.skip(f"this machine is too busy: threads waited {found.limit.queued:.0%} of their time for a core")
    assert (found.limit.what, found.limit.thread) == (Limiter.GIL, holder)
    assert f"program.py:{worst.line}" in found.limit.sentence


@pytest.mark.slow
@pytest.mark.parametrize("label", WITH_GIL)
def test_io_beside_a_thread_that_computes_is_a_convoy(record, label):
    found = diagnosed(record(label, planted.CONVOY))
    assert {convoy.thread for convoy in found.convoys} == {"send", "answer"}
    for convoy in found.convoys:
        assert convoy.interval == 0.005
        assert convoy.cost == convoy.waits * convoy.interval <= convoy.waited / 0.8
        assert convoy.holder.thread == "compute"
