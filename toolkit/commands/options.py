"""What the parsers of the commands share: option values, from text to values, and words that are not theirs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.file_options import with_files
from gilscope.toolkit.units import parse_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class CommandParser(argparse.ArgumentParser):
    """The parser of one command, which may leave words to the program that it runs: they become `program`.

    Attributes:
        cut: Returns the command's own words and the program's; None when all are its own.
    """

    cut: Callable[[Sequence[str]], tuple[list[str], list[str]]] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the command's own words."""
        program: list[str] = []
        if self.cut is not None:
            args, program = self.cut(args)
        args = with_files(self._option_string_actions, args)
        found, unknown = super().parse_known_args(args, namespace)
        if self.cut is not None:
            found.program = program
        return found, unknown


def duration(text: str) -> float:
    """Return the seconds in "5m"; argparse shows the message when it is none."""
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def durations(text: str) -> tuple[float, ...]:
    """Return the seconds in "1ms,10ms", ascending."""
    return tuple(sorted({duration(each) for each in names(text)}))


def names(text: str) -> tuple[str, ...]:
    """Return the parts of a list with commas, at least one."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("an empty list; leave the option out for the default")
    return found


def counts(text: str) -> tuple[int, ...]:
    """Return the positive integers in "1,2,4", ascending and without repetition."""
    try:
        found = sorted({int(each) for each in names(text)})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers; write it like 1,2,4") from None
    if not found or found[0] < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: every number must be at least 1")
    return tuple(found)


def positive(text: str) -> int:
    """Return a positive integer."""
    (*rest, number) = counts(text)
    if rest:
        raise argparse.ArgumentTypeError(f"{text!r} is not one number")
    return number


def share(text: str) -> float:
    """Return 0.05 for "5%" and for "0.05"."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; write it like 2%")
    return value
