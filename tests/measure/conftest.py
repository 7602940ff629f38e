"""What every measured process in these tests has."""

import tempfile

import pytest

from tests.measure.children import python_of


@pytest.fixture(autouse=True)
def sockets(monkeypatch):
    """Have processes that are killed leave multiprocessing's sockets where they go with the test.

    A test's own folder has too long a name for them, so that a measured process is not given one of its own.
    """
    with tempfile.TemporaryDirectory(prefix="sockets-", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield folder


@pytest.fixture(scope="session")
def python(build):
    """Return the interpreter of `build`, with what measuring needs."""
    return python_of(build)
