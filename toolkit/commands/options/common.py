"""Shared parts of the commands' parsers: the parser classes, and functions that parse values."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NoReturn

from gilscope.toolkit import escaping
from gilscope.toolkit.commands.options.files import tie_values
from gilscope.toolkit.commands.streams import put
from gilscope.toolkit.units import TIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PERCENT = {"%": 0.01}
# What a value of an option that takes a list looks like, None: the name of a model.  No workload, package or folder is
# likely to be called so.
LIST_VALUES = {"--builds": re.compile(r"3\.\d+t?"), "--workers": re.compile(r"\d+"), "--models": None,
               "--task-length": re.compile(r"[\d.]+[mun\u00b5]?s")}
_SEPARATOR = re.compile(r"[\s,]+")


class Parser(argparse.ArgumentParser):
    """A parser whose messages escape control characters.

    Options cannot be abbreviated: an abbreviation that is unique today may be ambiguous tomorrow.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help; unlike argparse, report a full disk."""
        if message and file is sys.stdout:
            put(message, end="")
        else:
            super()._print_message(message, file)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Exit after printing a message."""
        super().exit(status, message and escaping.message(message))


class CommandParser(Parser):
    """The parser of one command, which may pass words on to a program: they become `program`.

    Attributes:
        cut: Returns the command's own words and the program's; None if the command runs no program.
    """

    cut: Callable[[Mapping[str, argparse.Action], Sequence[str]], tuple[list[str], list[str]]] | None = None

    def error(self, message: str) -> NoReturn:
        """Exit with the message alone; a list of all options would push it off the screen."""
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` shows the options\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the command's own words."""
        program: list[str] = []
        if self.cut is not None:
            args, program = self.cut(self._option_string_actions, args)
        args = tie_values(self._option_string_actions, args)
        if written := _split_list(self._option_string_actions, args):
            self.error(f"{written[0]} takes one word, its values separated by commas without spaces: "
                       f"{written[0]} {','.join(written[1:])}")
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        if self.cut is not None:
            found.program = program
        return found, unknown

    def _meant(self, words: Sequence[str]) -> str:
        """Return a hint at the option that resembles an unknown one."""
        from difflib import get_close_matches  # noqa: PLC0415 - every command imports this module

        if "-m" in words:
            return "; `run` and `scale` measure MODULE:FUNCTION, `race` and `gil` run -m MODULE"
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        likely = (get_close_matches(option, self._option_string_actions, n=1) for option in options)
        meant = next(filter(None, likely), None)
        return f"; did you mean {meant[0]}?" if meant else ""

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Return the value of one word; refuse an empty one, which would mean the current folder, or any name."""
        if not arg_string.strip() and action.default != () and all(
                arg_string is not usual for usual in (action.default, action.const)):
            raise argparse.ArgumentError(action, "it is empty; leave it out, or give it a value")
        return super()._get_value(action, arg_string)


def _split_list(actions: Mapping[str, argparse.Action], words: Sequence[str]) -> list[str]:
    """Return an option that takes a list and the values meant for it, if some are separated by spaces; else []."""
    for index, word in enumerate(words):
        if word == "--":
            break
        option, tied, value = word.partition("=")
        if option not in LIST_VALUES or option not in actions:
            continue
        first, *rest = [value] * bool(tied) + list(words[index + 1:]) or [""]
        whole = "," in first.rstrip(",") and not first.endswith(",")   # a list with commas, as it should be
        more = [] if whole else list(takewhile(lambda text: _are_values(option, text), rest))  # noqa: B023 - used here
        if _are_values(option, first) and (more or _has_gap(first)):
            return [option, *(part for text in (first, *more) for part in _SEPARATOR.split(text) if part)]
    return []


def _are_values(option: str, text: str) -> bool:
    parts = [part for part in _SEPARATOR.split(text) if part]
    if like := LIST_VALUES[option]:
        return bool(parts) and all(map(like.fullmatch, parts))
    from gilscope.toolkit.concurrency_models import MODELS  # noqa: PLC0415 - every command imports this module

    families = {model.family for model in MODELS.values()}
    return bool(parts) and all(part in MODELS or part in families for part in parts)


def _has_gap(text: str) -> bool:
    """Return True if two values are separated by spaces alone."""
    return any(len(part.split()) > 1 for part in text.split(","))


@dataclass(frozen=True, slots=True, eq=False)  # argparse looks types up by their hash
class UnitValue:
    """Parses an option's value with a unit, a time or a percentage; a `type` for argparse.

    A number without a unit is refused: `--task-length 1` may be meant in milliseconds, and a silent guess would measure
    something else.
    """

    what: str  # "duration"
    units: Mapping[str, float]  # a unit -> its value in the returned number
    like: str  # examples for the message
    meant: tuple[str, ...]  # the likely units of a number without one
    with_zero: bool = False
    limit: float = float("inf")  # the returned number is below this

    def __call__(self, text: str) -> float:
        """Return "5m" in seconds, "2%" as 0.02; argparse shows the message of an error."""
        match = _NUMBER.fullmatch(text.strip().replace("µ", "u").replace("\N{GREEK SMALL LETTER MU}", "u"))
        if match is None or (match["unit"] and match["unit"] not in self.units):
            raise argparse.ArgumentTypeError(f"{text!r} is not a {self.what}; write it like {self.like}")
        number = float(match["number"])
        if number > 0 and not match["unit"]:  # zero and negative numbers get the message below
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
duration = UnitValue("duration", TIMES, like="250ms, 10s, 5m or 1h", meant=("s", "m", "h"))
task_length = UnitValue("duration", TIMES, like="250us, 1ms or 10s", meant=("us", "ms", "s"))
share = UnitValue("percentage", PERCENT, like="2%", meant=("%",), limit=1.0)  # a part of a whole, so less than 100 %
growth = UnitValue("percentage", PERCENT, like="5%", meant=("%",), with_zero=True)  # may exceed 100 %


def add_wait_quiet(group: Any, before: str) -> None:
    """Add --wait-quiet; `before` is what the machine is to be quiet for: "measuring"."""
    from gilscope.toolkit.evaluate.request import WAIT_QUIET  # noqa: PLC0415 - every command imports this module

    group.add_argument("--wait-quiet", action="store_const", const=WAIT_QUIET, default=0.0,
                       help=f"Before {before}, wait until other programs leave the cores idle, at most "
                            f"{WAIT_QUIET / 60:.0f} minutes. The wait does not count towards the budget.")


def add_build(parser: Any, more: str = "Use it for a build that `gilscope builds` does not find.") -> None:
    """Add `--build` to a parser or a group of options; `more` says when to use it."""
    parser.add_argument("--build", metavar="LABEL=PATH", action="append", default=[],
                        help=f"Add the interpreter at PATH under the name LABEL (default: none). {more}")


def task_lengths(text: str) -> tuple[float, ...]:
    """Return the task lengths in "1ms,10ms" in seconds, ascending."""
    return tuple(sorted({task_length(each) for each in names(text)}))


def names(text: str) -> tuple[str, ...]:
    """Return the parts of a list with commas; at least one."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("the list is empty; leave the option out for the default")
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
