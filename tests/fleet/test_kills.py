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


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("killed", fleet_kills.KILLED)
def test_a_run_survives_what_is_killed_at_a_random_moment(killed, number, tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_kills, "END_SECONDS", 2 * LEASE)   # a kill may come just when nobody is asked
    tried = fleet_kills.attempt(killed, random.Random(f"{killed} {number}"), tmp_path, seconds=0.5)
    assert (tried.forgotten, tried.damaged, tried.left) == (0, [], 0), tried
    assert tried.went_on, tried
