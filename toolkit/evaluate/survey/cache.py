"""Answers of surveys, kept for a day in the cache folder: who asks again, or goes on, takes them from there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.bounded_reading import parse_json, read_text
from gilscope.toolkit.builds.user_dirs import cache_dir
from gilscope.toolkit.evaluate.packages.install.eviction import KEPT_SECONDS, SURVEYS
from gilscope.toolkit.evaluate.packages.install.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.survey.answer import Answer, from_line, to_line
from gilscope.toolkit.store.header import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class KeptAnswers:
    """What was answered to one question, a file for each package."""

    def __init__(self, depends: Sequence[str]) -> None:
        """Look for answers that go by `depends`: the builds, and how they were asked."""
        self._depends = (__version__, *depends)
        self._folder = cache_dir() / SURVEYS
        _remove_old(self._folder)

    def get(self, package: str) -> Answer | None:
        """Return what was answered within the last day; None: nothing, or it cannot be read."""
        try:
            kept: dict[str, Any] = parse_json(read_text(self._file(package)))
            if not 0 <= time.time() - float(kept["made"]) < FRESH_SECONDS:
                return None
            return replace(from_line(kept["answer"]), kept=True)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, answer: Answer) -> None:
        """Keep an answer; one that says nothing of the package is asked for again."""
        if answer.problem or answer.kept:
            return
        text = json.dumps({"made": time.time(), "answer": to_line(answer)})
        with contextlib.suppress(OSError):   # that it cannot be kept costs nobody the answer
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._file(answer.package), text)

    def _file(self, package: str) -> Path:
        key = hashlib.sha256(chr(0).join((package, *self._depends)).encode("utf-8", "surrogateescape")).hexdigest()
        return self._folder / f"{key[:32]}.json"


def _remove_old(folder: Path) -> None:
    for file in folder.glob("*"):
        with contextlib.suppress(OSError):
            if file.stat().st_mtime < time.time() - KEPT_SECONDS:
                file.unlink()
