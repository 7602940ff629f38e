"""Raw values that two runs have in common, as a copy and a part of a run have."""

from dataclasses import replace

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.store import load_run
from gilscope.toolkit.store.shared_values import refuse_shared_values, value_marks
from tests.conformance.builds import ROOT
from tests.fakes import make_run

EXAMPLE = ROOT / "results" / "example"


def part_of(run, rounds):
    """Return the first rounds of a run."""
    return replace(run, rounds_done=rounds, measurements=tuple(
        replace(each, observations=tuple(one for one in each.observations if one.round < rounds))
        for each in run.measurements))


def test_part_of_a_run_is_refused_with_how_much_it_shares():
    run = load_run(EXAMPLE / "own-function")
    part = part_of(run, 3)
    whole, some = len(value_marks(run)), len(value_marks(part))
    assert some < whole
    with pytest.raises(ToolkitError, match=rf"one and two share raw values: {some} of the {some} processes of one are "
                                           rf"among the {whole} of two.* not independent, so nothing is judged"):
        refuse_shared_values(part, run, ("one", "two"))


def test_runs_that_were_measured_separately_share_nothing():
    refuse_shared_values(load_run(EXAMPLE / "own-function"), load_run(EXAMPLE / "second-worker"), ("one", "two"))


def test_processes_that_may_agree_by_chance_have_no_mark():
    run = make_run()
    assert {len(set(one.wall)) for each in run.measurements for one in each.observations} == {1}
    assert not value_marks(run)   # values that are all equal, without start times
