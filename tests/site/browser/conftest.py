"""A Chromium for the tests of this folder."""

import pytest

from tests.site.browser.opened import NoBrowserError, launched


@pytest.fixture(scope="session")
def chromium():
    """Return a browser; without one the tests are skipped and say what is missing."""
    try:
        with launched() as browser:
            yield browser
    except NoBrowserError as error:
        pytest.skip(str(error))
