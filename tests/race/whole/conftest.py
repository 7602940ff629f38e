"""What the tests of `gilscope race` as a whole share."""

import pytest

from tests.conformance.builds import chosen, python_of, run_child


@pytest.fixture(scope="session", autouse=True)
def cores():
    """Have the cores compiled: what a compilation of more than ten seconds says is not the program's."""
    for build in chosen():
        run_child(python_of(build), "-c", "from gilscope.toolkit.race._core.build import load; load()")
