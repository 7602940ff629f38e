"""What the tests of the race checker share."""

import pytest

from tests.race.sync_layer import Unseen, installed


@pytest.fixture
def core():
    with installed() as fake:
        yield fake


@pytest.fixture
def unseen():
    event = Unseen()
    yield event
    event.close()
