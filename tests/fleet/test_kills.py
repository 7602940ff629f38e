"""A kill -9 of any part of a fleet costs no round that is kept, and no file; Ctrl-C leaves nothing behind.

`python -m tests.benchmarks.fleet_kills` tries it more often, and counts the rounds that were on their way.
"""

import random
from importlib.util import find_spec

import pytest

from gilscope.toolkit.fleet.on_host import LEASE
from tests.benchmarks import fleet_kills

pytestmark = [pytest.mark.slow, pytest.mark.newest,
              pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")]


@pytest.fixture
def check(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_kills, "END_SECONDS", 2 * LEASE)   # a kill may come just when nobody is asked

    def tried(killed, draw, point=None):
        outcome = fleet_kills.attempt(killed, draw, tmp_path, seconds=0.5, point=point)
        assert (outcome.forgotten, outcome.damaged, outcome.left) == (0, [], 0), outcome
        assert outcome.went_on, outcome

    return tried


@pytest.mark.parametrize("point", [("begins", 0), ("did", 2)], ids=["before-a-round-is-there", "between-rounds"])
@pytest.mark.parametrize("killed", fleet_kills.KILLED)
def test_a_run_survives_what_is_killed(killed, point, check):
    check(killed, random.Random(killed), point)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("killed", fleet_kills.KILLED)
def test_a_run_survives_what_is_killed_at_a_random_moment(killed, number, check):
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")   # shown when the test fails
    check(killed, random.Random(seed))
