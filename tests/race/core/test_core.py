"""The core gives the same verdicts on each kind of build: all cases in one child process."""

import json

import pytest

from tests.conformance.builds import run_child
from tests.race.core.cases.run import cases
from tests.race.core.tracing import contradictions, run_traced

# What may be skipped, and why.
SKIPPED = {
    "structure:numpy": "needs NumPy",
    "overrides:attributes_of_a_container_are_not_asked_of_the_program": "numpy is not installed",
}


@pytest.mark.builds("gil", "free")
def test_every_case_passes(python):
    assert_passed(run_child(python, "-m", "tests.race.core.cases.run"))


@pytest.mark.slow
@pytest.mark.builds("gil", "free")
def test_core_and_oracle_agree_on_every_case(python, tmp_path):
    assert_passed(run_traced(python, tmp_path, "-m", "tests.race.core.cases.run"))
    assert contradictions(tmp_path) == []


def assert_passed(child):
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    outcomes = {line["case"]: line["outcome"] for line in lines if "outcome" in line}
    end = f"after {lines[-1:]} the child ended with {child.returncode}\n{child.stderr}"
    failed = {case: outcome for case, outcome in outcomes.items() if outcome != "passed"}
    skipped = {case for case in failed.keys() & SKIPPED.keys() if failed[case] == f"skipped: {SKIPPED[case]}"}
    told = "\n".join(f"--- {case}\n{failed[case]}" for case in failed if case not in skipped)
    assert not told, f"{told}\n{end}"
    assert set(outcomes) == set(cases()), f"not run: {sorted(set(cases()) - set(outcomes))[:3]} ...; {end}"
    assert (child.returncode, child.stderr) == (0, ""), end
