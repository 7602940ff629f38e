"""Answers of surveys, stored in the cache folder for a day, so that a repeated or resumed survey reuses them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.bounded_reading import parse_json, read_text
from gilscope.toolkit.evaluate.packages.eviction import KEPT_SECONDS, SURVEYS
from gilscope.toolkit.evaluate.packages.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.survey.answer import PackageAnswer, from_line, to_line
from gilscope.toolkit.store.header import replace_file
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class AnswerCache:
    """Stored answers for one set of options, a file for each package."""

    def __init__(self, depends: Sequence[str]) -> None:
        """Open the answers for `depends`: the builds, and the options."""
        self._depends = (__version__, *depends)
        self._folder = cache_dir() / SURVEYS
        _remove_old(self._folder)

    def get(self, package: str) -> PackageAnswer | None:
        """Return the answer of the last day; None if there is none or it is damaged."""
        try:
            kept: dict[str, Any] = parse_json(read_text(self._file(package)))
            if not 0 <= time.time() - float(kept["made"]) < FRESH_SECONDS:
                return None
            return replace(from_line(kept["answer"]), kept=True)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, answer: PackageAnswer) -> None:
        """Store an answer, unless it is a failure to examine the package."""
        if answer.problem or answer.kept:
            return
        text = json.dumps({"made": time.time(), "answer": to_line(answer)})
        with contextlib.suppress(OSError):   # a failure to store it does not matter
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
