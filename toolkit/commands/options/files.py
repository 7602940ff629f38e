"""`--markdown`, `--json` and `--html` on the command line, the same for every command that has them.

Without FILE, or with `-`, the form takes the text's place on standard output; with FILE it is written beside the text.
`output.reports` does that.  Nothing heavy is imported: every command's parser waits for what stands here.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STDOUT = "-"
_SUFFIXES = {"json": ".json", "markdown": ".md"}
# Endings of no label: a FILE is meant, if a wrong one.
_NO_LABELS = (".txt", ".log", ".out", ".html", ".csv", ".yaml", ".yml", ".json", ".md")
PAGES = (".html", ".htm")
PLAN = "free-threading.md"   # the FILE of a plan where none is named
_DEVICES = "/dev/"   # /dev/null, and what shells give for >(command)


class FileOption(argparse.Action):
    """An option whose FILE may be left out, and is told from a word that is the command's by how it ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, **others: Any) -> None:
        super().__init__(option_strings, dest, nargs="?", const=STDOUT, metavar="FILE", **others)
        self.suffix = _SUFFIXES[dest]

    def is_file(self, word: str) -> bool:
        """Return whether `word` is this option's FILE."""
        return word == STDOUT or word.endswith(self.suffix) or word.startswith(_DEVICES)

    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        """Keep FILE, or refuse one that cannot be written: what is measured first may take hours."""
        if not self.is_file(values):
            raise argparse.ArgumentError(
                self, f"{values!r} does not end in {self.suffix}; a FILE does, - is standard output")
        if values != STDOUT and not Path(values).parent.is_dir():
            raise argparse.ArgumentError(self, f"there is no folder {str(Path(values).parent)!r}")
        if STDOUT == values == getattr(namespace, _other(self.dest), None):
            raise argparse.ArgumentError(self, "--json and --markdown cannot both be on standard output: name a FILE")
        setattr(namespace, self.dest, values)


class PlanFile(FileOption):
    """A FILE in Markdown that is read before it is written anew; one that is left out has a name of its own."""

    def __init__(self, option_strings: Sequence[str], dest: str, **others: Any) -> None:
        argparse.Action.__init__(self, option_strings, dest, nargs="?", const=STDOUT, metavar="FILE", **others)
        self.suffix = ".md"

    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        """Keep FILE, or refuse one that cannot be written: what is measured first may take long."""
        if values != STDOUT and not values.endswith(self.suffix):
            raise argparse.ArgumentError(self, f"{values!r} does not end in {self.suffix}; a FILE does")
        place = Path(PLAN if values == STDOUT else values)
        if not place.parent.is_dir():
            raise argparse.ArgumentError(self, f"there is no folder {str(place.parent)!r}")
        setattr(namespace, self.dest, place)


def _other(dest: str) -> str:
    (other,) = _SUFFIXES.keys() - {dest}
    return other


def add_output(parser: Any, what: str = "the report") -> None:
    """Add `--markdown` and `--json` to a parser or a group of options."""
    parser.add_argument(
        "--markdown", action=FileOption,
        help=f"Write {what} as Markdown to FILE, which ends in .md (default: to standard output, in place of the "
        "text). For pasting into an issue.")
    parser.add_argument(
        "--json", action=FileOption,
        help=f"Write {what} as JSON to FILE, which ends in .json (default: to standard output, in place of the "
        "text). For scripts.")


def html_file(text: str) -> str:
    """Return the name of a page to write; argparse shows why one is refused, before anything takes long."""
    if not text.endswith(PAGES) and not text.startswith(_DEVICES):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .html; a page does")
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(Path(text).parent)!r}")
    return text


def add_page(parser: Any, what: str = "the report") -> None:
    """Add `--html` to a parser or a group of options."""
    parser.add_argument(
        "--html", metavar="FILE", type=html_file,
        help=f"Also write {what} as one page to FILE, which ends in .html. For a browser: to attach, or to mail; paths "
        "are left out, and it is refused where it names the user, the host or a secret.")


def with_files(actions: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """Return the words of a command line with each FILE tied to its option, `--json=FILE`, so that no other word is.

    Args:
        actions: The parser's, by the option as it is written.
        words: The command's.
    """
    tied: list[str] = []
    for word in words:
        action = actions.get(tied[-1]) if tied else None
        if isinstance(action, FileOption) and "--" not in tied:
            meant = action.is_file(word) or word.endswith(_NO_LABELS)
            tied[-1] += f"={word if meant else STDOUT}"
            if meant:
                continue
        tied.append(word)
    return tied
