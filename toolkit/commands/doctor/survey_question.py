"""What a survey asks about each package, and who answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.survey.asking import Question

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Generator, Sequence

    from gilscope.toolkit.evaluate.survey.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who answers, and how."""

    question: Question
    depends: tuple[str, ...]   # what answers go by: the builds, and how they are asked
    ask: Callable[[Sequence[str]], Generator[Answer]]   # answers as they come; closed, it ends what is being asked


def question_of(args: argparse.Namespace, labels: Sequence[str]) -> Question:
    """Return what the command line asks about each package, on builds of these labels."""
    return Question(builds=tuple(labels), added=tuple(args.build), limit=args.timeout,
                    interpreters=args.interpreters, sdists=args.build_sdists)


def known_as(question: Question) -> str:
    """Return what other answers of the same builds are told from these by."""
    return f"{question.limit} {question.interpreters} {question.sdists}"
