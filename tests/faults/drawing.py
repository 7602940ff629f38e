"""How many cases of a kind are tried, and what they are drawn by: the same ones each time, unless a seed is given."""

import os
import random

from tests.conftest import SEED

CHOSEN = os.environ.get("GILSCOPE_FAULTS_SEED", str(SEED))   # `make test-faults` sets and prints it


def draw(*where):
    """Return a source of cases that depends on the seed and the place alone."""
    return random.Random("/".join(map(str, (CHOSEN, *where))))
