"""What the parsers of the commands share: option values, from text to values, and words that are not theirs."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from gilscope.toolkit import escaping
from gilscope.toolkit.commands.options.files import with_files
from gilscope.toolkit.commands.streams import put
from gilscope.toolkit.units import TIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PERCENT = {"%": 0.01}


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong with words without repeating what does not show in them.

    An option is written out: a beginning of it that is clear today is another one's tomorrow.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help; argparse itself takes a full disk for success."""
        if message and file is sys.stdout:
            put(message, end="")
        else:
            super()._print_message(message, file)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Leave, after a message."""
        super().exit(status, message and escaping.message(message))


class CommandParser(Parser):
    """The parser of one command, which may leave words to the program that it runs: they become `program`.

    Attributes:
        cut: Returns the command's own words and the program's; None when all are its own.
    """

    cut: Callable[[Sequence[str]], tuple[list[str], list[str]]] | None = None

    def error(self, message: str) -> NoReturn:
        """Leave with what is wrong, without the list of all options, which would push it off the screen."""
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` shows the options\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the command's own words."""
        program: list[str] = []
        if self.cut is not None:
            args, program = self.cut(args)
        args = with_files(self._option_string_actions, args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        if self.cut is not None:
            found.program = program
        return found, unknown

    def _meant(self, words: Sequence[str]) -> str:
        """Return which option may be meant by the first of the words that is like one."""
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        likely = (get_close_matches(option, self._option_string_actions, n=1) for option in options)
        meant = next(filter(None, likely), None)
        return f"; did you mean {meant[0]}?" if meant else ""

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Return the value of one word; a path that is empty would be the current folder, a name any."""
        if not arg_string.strip() and action.default != () and all(
                arg_string is not usual for usual in (action.default, action.const)):
            raise argparse.ArgumentError(action, "it is empty; leave it out, or say what it is")
        return super()._get_value(action, arg_string)


@dataclass(frozen=True, slots=True, eq=False)  # argparse looks types up by their hash
class Quantity:
    """An option's value that has a unit, a time or a percentage; to be given to argparse as `type`.

    A bare number is refused: whoever writes `--task-length 1` may mean a millisecond, and would be given an answer to
    another question without a word.
    """

    what: str  # "duration"
    units: Mapping[str, float]  # how a unit is written -> its value in what is returned
    like: str  # examples, for the message
    meant: tuple[str, ...]  # the units that a bare number is likely to be in
    with_zero: bool = False
    limit: float = float("inf")  # what is returned lies below

    def __call__(self, text: str) -> float:
        """Return the value of "5m" in seconds, of "2%" as 0.02; argparse shows the message when it is none."""
        match = _NUMBER.fullmatch(text.strip().replace("µ", "u").replace("\N{GREEK SMALL LETTER MU}", "u"))
        if match is None or (match["unit"] and match["unit"] not in self.units):
            raise argparse.ArgumentTypeError(f"{text!r} is not a {self.what}; write it like {self.like}")
        number = float(match["number"])
        if number > 0 and not match["unit"]:  # what is not positive is the same in every unit
            raise argparse.ArgumentTypeError(f"{text!r} has no unit: write {_alternatives(self._readings(number))}")
        value = number * self.units.get(match["unit"], 1.0)
        if not 0 <= value < self.limit or (value == 0 and not self.with_zero):
            sign = "" if self.with_zero else "positive "
            below = f" below {self.limit:.0%}" if self.limit <= 1 else ""
            raise argparse.ArgumentTypeError(f"{text!r} is not a {sign}{self.what}{below}; write it like {self.like}")
        return value

    def _readings(self, number: float) -> list[str]:
        as_share = [f"{100 * number:g}%"] if self.units is PERCENT and number < 1 else []  # 0.02: 2%, or 0.02%
        return as_share + [f"{number:g}{unit}" for unit in self.meant]


_NUMBER = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(?P<unit>[^\W\d_]*|%)", re.IGNORECASE)
duration = Quantity("duration", TIMES, like="250ms, 10s, 5m or 1h", meant=("s", "m", "h"))
task_length = Quantity("duration", TIMES, like="250us, 1ms or 10s", meant=("us", "ms", "s"))
share = Quantity("percentage", PERCENT, like="2%", meant=("%",), limit=1.0)  # of a whole, which it is less than
growth = Quantity("percentage", PERCENT, like="5%", meant=("%",), with_zero=True)  # of what may be outgrown


def add_build(parser: Any, more: str = "For one that is not found.") -> None:
    """Add `--build` to a parser or a group of options; `more` says what it is for."""
    parser.add_argument("--build", metavar="LABEL=PATH", action="append", default=[],
                        help=f"Add the interpreter at PATH under the name LABEL. {more}")


def task_lengths(text: str) -> tuple[float, ...]:
    """Return the seconds in "1ms,10ms", ascending: lengths of a task."""
    return tuple(sorted({task_length(each) for each in names(text)}))


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
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _alternatives(words: Sequence[str]) -> str:
    """Return "a", "a or b", "a, b or c"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
