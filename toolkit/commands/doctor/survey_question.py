"""The question of a survey about each package, and the source of its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.survey.asking import SurveyQuestion

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Generator, Sequence

    from gilscope.toolkit.evaluate.survey.answer import PackageAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSource:
    """The hosts or processes that answer a survey, and how they are asked."""

    question: SurveyQuestion
    depends: tuple[str, ...]   # cache key: the builds, and how they are asked
    ask: Callable[[Sequence[str]],
                  Generator[PackageAnswer]]   # yields answers; closing it ends running requests


def question_of(args: argparse.Namespace, labels: Sequence[str]) -> SurveyQuestion:
    """Return the question of the command line about each package, on builds of these labels."""
    return SurveyQuestion(builds=tuple(labels), added=tuple(args.build), limit=args.timeout,
                          interpreters=args.interpreters, sdists=args.build_sdists)
