"""Names of what processes share, by which gilscope finds what was left of those that were killed."""

from __future__ import annotations

import sys
from multiprocessing import process
from tempfile import gettempdir

OURS = "gilscope-"


def name_semaphores() -> None:
    """Name the semaphores that multiprocessing makes from now on after our temporary folder, where we have one.

    multiprocessing has no other way to say it; workers take it over from their parent.  On Linux alone: elsewhere names
    must be short, and nothing lists them.
    """
    folder = next((part for part in gettempdir().split("/") if part.startswith(OURS)), None)
    if folder and sys.platform == "linux":
        config = process.current_process()._config  # type: ignore[attr-defined]  # noqa: SLF001
        config["semprefix"] = f"/{folder}"
