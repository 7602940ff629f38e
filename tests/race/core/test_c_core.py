"""The C core under stress: addresses, crowds, forks, exits, memory, references; on each kind of build."""

import sys

import pytest

from tests.conformance.builds import run_child
from tests.race.core.c_core_child import SCENARIOS, SHARING

SLOW = {"more_threads_than_clocks"}     # thousands of threads
PROCESSES = [
    pytest.param(SHARING, id="sharing"),
    *(pytest.param((name,), id=name, marks=pytest.mark.slow if name in SLOW else ())
      for name in SCENARIOS if name not in SHARING)]


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("names", PROCESSES)
def test_scenarios(names, python):
    child = run_child(python, "-m", "tests.race.core.c_core_child", *names)
    assert (child.stdout.splitlines(), child.stderr, child.returncode) == (
        [line for name in names for line in (f"{name}: begins", f"{name}: done")], "", 0)


def test_no_scenario_is_left_out():
    ran = [name for case in PROCESSES for name in case.values[0]]
    assert sorted(ran) == sorted(SCENARIOS)
    assert len(ran) >= 29


def test_frames_are_read_where_they_lie_and_through_the_public_interface_alike():
    seen = [run_child(sys.executable, "-m", "tests.race.core.cases.run", "stack", "span", **extra)
            for extra in ({}, {"GILSCOPE_RACE_PUBLIC_FRAMES": "1"})]
    assert "passed" in seen[0].stdout
    assert seen[0].stdout == seen[1].stdout
