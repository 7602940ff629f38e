"""The files in which a runner takes what a step tells it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

MOST_SUMMARY = 900_000   # bytes; GitHub refuses a summary of more than 1 MiB


def set_output(name: str, value: str) -> None:
    """Set an output of the step; the value may have several lines."""
    end = secrets.token_hex(16)   # that no value can contain
    _append("GITHUB_OUTPUT", f"{name}<<{end}\n{value}\n{end}\n")


def add_summary(markdown: str) -> None:
    """Add to the job summary."""
    _append("GITHUB_STEP_SUMMARY", limited(markdown, MOST_SUMMARY))


def limited(markdown: str, most: int) -> str:
    """Return the first whole lines of a text, at most that many bytes of UTF-8; a line says if there are more."""
    if len(markdown.encode()) <= most:
        return markdown
    kept, size = [], 0
    for line in markdown.splitlines(keepends=True):
        size += len(line.encode())
        if size > most:
            break
        kept.append(line)
    return f"{''.join(kept)}\n\nThe rest is left out here: it is too long.\n"


def _append(variable: str, text: str) -> None:
    path = os.environ.get(variable)
    if path:   # outside of a runner there is none
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
