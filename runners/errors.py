"""Errors of a pool, as opposed to exceptions of its tasks."""

from __future__ import annotations


class WorkerError(Exception):
    """A worker ended, could not start, or failed with an exception that could not be sent; names the cause."""


class TeardownError(Exception):
    """A part of a pool did not end before its deadline.

    The thread or interpreter still runs, so this process can neither start another pool nor exit normally: flush
    everything worth keeping, then call `os._exit`.
    """


class RemoteTraceback(Exception):  # noqa: N818 - named as concurrent.futures names its own
    """The text of a traceback from another interpreter, shown as the cause of the exception it belongs to."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'
