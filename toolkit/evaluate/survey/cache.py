"""Answers of surveys, stored in the cache folder for a day, so that a repeated or resumed survey reuses them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope import __version__
from gilscope.toolkit.evaluate.packages.eviction import KEPT_SECONDS, SURVEYS
from gilscope.toolkit.evaluate.packages.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.survey.answer import PackageAnswer
from gilscope.toolkit.keyed_store import KeyedStore
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Sequence


class AnswerCache:
    """Stored answers for one set of options."""

    def __init__(self, depends: Sequence[str]) -> None:
        """Open the answers for `depends`: the builds, and the options."""
        self._depends = (__version__, *depends)
        self._store = KeyedStore(cache_dir() / SURVEYS)
        self._store.remove_older(KEPT_SECONDS)

    def get(self, package: str) -> PackageAnswer | None:
        """Return the answer of the last day, or None."""
        answer: PackageAnswer | None = self._store.get(
            PackageAnswer, package, *self._depends, most_age=FRESH_SECONDS)
        return answer and replace(answer, kept=True)

    def put(self, answer: PackageAnswer) -> None:
        """Store an answer, unless it is a failure to examine the package."""
        if not answer.problem and not answer.kept:
            self._store.put(answer, answer.package, *self._depends)
