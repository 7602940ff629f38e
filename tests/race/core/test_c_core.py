"""The C core under stress, one process per scenario and build: addresses, crowds, forks, exits, memory, references."""

import sys

import pytest

from tests.conformance.builds import builds, run_child
from tests.race.core.c_core_child import SCENARIOS

CASES = [f"{label}:{name}" for label in builds() for name in SCENARIOS]


@pytest.mark.sample(9)
@pytest.mark.parametrize("case", CASES)
def test_scenario(case):
    label, _, name = case.partition(":")
    if name == "subinterpreters" and builds()[label] == sys.executable:
        pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    child = run_child(builds()[label], "-m", "tests.race.core.c_core_child", name)
    if "UnavailableError" in child.stderr:
        pytest.skip(child.stderr.splitlines()[-1])
    assert (child.stdout, child.stderr, child.returncode) == ("done\n", "", 0)


def test_frames_are_read_where_they_lie_and_through_the_public_interface_alike():
    seen = [run_child(sys.executable, "-m", "tests.race.core.cases.run", "C", "stack", "span", **extra)
            for extra in ({}, {"GILSCOPE_RACE_PUBLIC_FRAMES": "1"})]
    if "unavailable" in seen[0].stdout:
        pytest.skip(seen[0].stdout)
    assert "passed" in seen[0].stdout
    assert seen[0].stdout == seen[1].stdout
