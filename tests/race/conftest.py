"""What the tests of the race checker's synchronisation layer share."""

import pytest

from tests.race.sync.layer import CORES, Unseen, installed


@pytest.fixture(params=CORES)
def core(request):
    """A core with the layer over it: one to look into, and those that programs are checked with."""
    with installed(CORES[request.param]()) as core:
        yield core


@pytest.fixture
def fake():
    """The core that can be looked into, with the layer over it."""
    with installed() as core:
        yield core


@pytest.fixture
def unseen():
    """An event that no checker knows."""
    event = Unseen()
    yield event
    event.close()
