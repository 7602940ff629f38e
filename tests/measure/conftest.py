"""What every measured process in these tests has."""

import tempfile

import pytest


@pytest.fixture(autouse=True)
def sockets(monkeypatch):
    """Have processes that are killed leave multiprocessing's sockets where they go with the test.

    A test's own folder has too long a name for them, so that a measured process is not given one of its own.
    """
    with tempfile.TemporaryDirectory(prefix="sockets-", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield folder
