"""Options that name a FILE to write.

Nothing heavy is imported here: the parser of every command needs this module.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STDOUT = "-"
# Endings that no label has: the word is meant as a FILE, even where the option refuses it.
_NO_LABELS = (".txt", ".log", ".out", ".html", ".csv", ".yaml", ".yml", ".json", ".md")
PAGES = (".html", ".htm")
PLAN = "free-threading.md"   # the default FILE of a plan
DEVICES = "/dev/"   # /dev/null, and what shells give for >(command)


class OptionalValueOption(argparse.Action):
    """An option whose value may be left out, so the next word is its value only if it looks like one."""

    def is_value(self, word: str) -> bool:
        """Return True if `word`, which follows the option, is its value."""
        raise NotImplementedError

    def is_meant(self, word: str) -> bool:
        """Return True if `word` can only be meant as the value, even if it is refused."""
        return self.is_value(word)

    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        """Store the value."""
        setattr(namespace, self.dest, values)


class FileOption(OptionalValueOption):
    """An option with an optional FILE, whose name ends in a suffix."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, suffix: str, others: Sequence[str] = (),
                 **options: Any) -> None:
        """Make the action.

        Args:
            option_strings: From argparse.
            dest: From argparse.
            suffix: The end of the FILE's name.
            others: `dest` of the options that exclude this one on standard output.
            options: Passed on to argparse.
        """
        super().__init__(option_strings, dest, nargs="?", const=STDOUT, metavar="FILE", **options)
        self.suffix = suffix
        self.others = others

    def is_value(self, word: str) -> bool:
        """Return True if `word` names a FILE of this option, or standard output."""
        return word == STDOUT or word.endswith(self.suffix) or word.startswith(DEVICES)

    def is_meant(self, word: str) -> bool:
        """Return True if `word` is a FILE, of this form or another."""
        return self.is_value(word) or word.endswith(_NO_LABELS)

    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        """Store FILE; refuse one that cannot be written now, because the measurement before it may take hours."""
        if not self.is_value(values):
            raise argparse.ArgumentError(
                self, f"{values!r} does not end in {self.suffix}; a FILE does, - is standard output")
        if values != STDOUT and not Path(values).parent.is_dir():
            raise argparse.ArgumentError(self, f"there is no folder {str(Path(values).parent)!r}")
        rivals = [name for name in self.others if getattr(namespace, name, None) == STDOUT]
        if values == STDOUT and rivals:
            both = " and ".join(sorted(f"--{name}" for name in (self.dest, rivals[0])))
            raise argparse.ArgumentError(self, f"{both} cannot both be on standard output: name a FILE")
        setattr(namespace, self.dest, values)


class PlanFileOption(FileOption):
    """A FILE in Markdown that is read before it is rewritten, with a default name of its own."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, suffix=".md", **options)

    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        """Store FILE; refuse one that cannot be written now, because the evaluation before it may take long."""
        if values != STDOUT and not values.endswith(self.suffix):
            raise argparse.ArgumentError(self, f"{values!r} does not end in {self.suffix}; a FILE does")
        place = Path(PLAN if values == STDOUT else values)
        if not place.parent.is_dir():
            raise argparse.ArgumentError(self, f"there is no folder {str(place.parent)!r}")
        setattr(namespace, self.dest, place)


def form_help(what: str, title: str, suffix: str, *, stream: str = "standard output", text: str = "text") -> str:
    """Return the first sentence of the help of an option for a form: the same rule in every command.

    Args:
        what: What is written, such as "the report".
        title: The form, such as "JSON".
        suffix: The end of the FILE's name; "" for any.
        stream: Where the form goes without FILE.
        text: What it replaces there.
    """
    ends = f", which ends in {suffix}" if suffix else ""
    return f"Also write {what} as {title} to FILE{ends}; without FILE, write it to {stream} in place of the {text}."


def add_json(parser: Any, what: str) -> None:
    """Add `--json` to the parser of a command that prints `what`, such as "table", and has no other form."""
    parser.add_argument("--json", action=FileOption, suffix=".json",
                        help=f"{form_help(f'the {what}', 'JSON', '.json', text=what)} Use it in scripts.")


def html_file(text: str) -> str:
    """Return the name of a page to write; argparse shows why a name is refused, before anything takes long."""
    if not text.endswith(PAGES) and not text.startswith(DEVICES):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .html; a page does")
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(Path(text).parent)!r}")
    return text


def add_page(parser: Any, what: str = "the report") -> None:
    """Add `--html` to a parser or a group of options."""
    parser.add_argument(
        "--html", metavar="FILE", type=html_file,
        help=f"Also write {what} as one page to FILE, which ends in .html. Use it for a browser, an attachment "
        "or an email. Paths in the project are relative and others are replaced; a page that would name the user, the "
        "host or a secret is refused.")
    add_publisher(parser, "the page of --html")


def add_publisher(parser: Any, where: str) -> None:
    """Add `--by` to a parser or a group of options; `where` is what names the publisher."""
    parser.add_argument(
        "--by", metavar="NAME", default="",
        help=f"Say on {where} that NAME publishes it (default: nobody is named). Use it when others shall know whom to "
        "ask.")


def tie_values(actions: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """Return the words of a command line with every optional value tied to its option, as in `--json=FILE`.

    An option without its value gets its default, so argparse takes no other word for it.

    Args:
        actions: The parser's, by the option as it is written.
        words: The command's.
    """
    tied: list[str] = []
    for word in words:
        action = actions.get(tied[-1]) if tied else None
        if isinstance(action, OptionalValueOption) and "--" not in tied:
            tied[-1] += f"={word if action.is_meant(word) else action.const}"
            if action.is_meant(word):
                continue
        tied.append(word)
    return tied
