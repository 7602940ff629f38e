"""The reports of a command: one option for each form in `DOCUMENT_FORMATS`, and the text or files that it asks for.

Without FILE, a form takes the place of the text: on standard output, or on standard error if standard output belongs to
a program.  With FILE it is written beside the text.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.options.files import STDOUT, FileOption, form_help
from gilscope.toolkit.commands.streams import put
from gilscope.toolkit.errors import ToolkitError, cannot_write
from gilscope.toolkit.escaping import in_json
from gilscope.toolkit.report import DOCUMENT_FORMATS
from gilscope.toolkit.units import list_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gilscope.toolkit.report import DocumentFormat
    from gilscope.toolkit.report.document import Document


def add_output(parser: Any, what: str = "the report") -> None:
    """Add the option of each renderer to a parser or a group of options."""
    names = [each.name for each in DOCUMENT_FORMATS]
    for each in DOCUMENT_FORMATS:
        parser.add_argument(
            each.option, action=FileOption, suffix=each.suffix, others=[name for name in names if name != each.name],
            help=f"{form_help(what, each.title, each.suffix)} {each.purpose}")


def add_full(parser: Any, everything: str, answer: str) -> None:
    """Add the option that prints the whole report; the texts say what that is, and what the answer is."""
    parser.add_argument(
        "--full", action="store_true",
        help=f"Print everything: {everything} (default: {answer}). Use it to check or cite a number.")


def add_full_run(parser: Any) -> None:
    """Add the same for the report of a run."""
    add_full(parser, "times, intervals and efficiency of each cell, builds, machine, noise",
             "what to use, what it costs, what is open")


def add_program_output(parser: Any) -> None:
    """Add the option of each renderer to a command whose standard output belongs to the program that it runs."""
    from gilscope.toolkit.commands.options.programs import ProgramFileOption

    names = [each.name for each in DOCUMENT_FORMATS]
    for each in DOCUMENT_FORMATS:
        parser.add_argument(
            each.option, action=ProgramFileOption, suffix=each.suffix,
            others=[name for name in names if name != each.name],
            help=f"{form_help('the report', each.title, '', stream='standard error')} {each.purpose}")


def requested(args: argparse.Namespace) -> Iterator[tuple[DocumentFormat, str]]:
    """Yield the forms that the command line asks for, each with its FILE or `STDOUT`."""
    for each in DOCUMENT_FORMATS:
        if (name := getattr(args, each.name)) is not None:
            yield each, name


def form_on_stdout(args: argparse.Namespace) -> DocumentFormat | None:
    """Return the form that takes the place of the text on standard output, or None."""
    return next((each for each, name in requested(args) if name == STDOUT), None)


def all_options(*others: str) -> str:
    """Return the options of all forms and `others` as text: "--markdown and --json"."""
    return list_text([each.option for each in DOCUMENT_FORMATS] + [*others])


def save_as_text(document: Document, folder: Path) -> None:
    """Write report.md and report.txt, which are part of what is published.

    Raises:
        OSError: a file cannot be written.
    """
    from gilscope.toolkit.report import markdown, terminal

    for name, render in (("report.md", markdown.render), ("report.txt", terminal.render)):
        (folder / name).write_text(render(document) + "\n", encoding="utf-8")


def refuse_beside_dry_run(args: argparse.Namespace) -> None:
    """Refuse a report of what is not going to be measured.

    Raises:
        ToolkitError: a report is requested with --dry-run.
    """
    if args.dry_run and (given := [each.option for each, _ in requested(args)]):
        raise ToolkitError(f"--dry-run measures nothing, so there is no report: leave {list_text(given)} out")


class ReportOutput:
    """Writes the reports of one command in the forms that its command line asks for."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._requested = list(requested(args))
        self._on_stdout = form_on_stdout(args)
        self._documents: list[Callable[[], Document]] = []

    def show(self, document: Document) -> None:
        """Print a report at once, unless a form of all reports' values takes its place."""
        self.show_answer(lambda: document, lambda: document, full=False)

    def show_answer(self, answer: Callable[[], Document], whole: Callable[[], Document], *, full: bool) -> None:
        """Print the answer of a report, or with `full` the whole report, which all other forms show, too.

        Each is made only if it is shown.
        """
        whole = cache(whole)
        if (text := self._text(whole if full else answer, whole)) is not None:
            put(("\n" if self._documents else "") + text)
        self._documents.append(whole)

    def _text(self, shown: Callable[[], Document], whole: Callable[[], Document]) -> str | None:
        if self._on_stdout is None:
            from gilscope.toolkit.report import terminal

            return terminal.render_for_stdout(shown())
        from gilscope.toolkit.report.wording import spelling

        render = self._on_stdout.document
        return spelling(sys.stdout.encoding)(render(whole())) if render else None

    def finish(self, values: Callable[[], Mapping[str, Any]]) -> None:
        """Write the forms that are not printed yet.

        Args:
            values: Returns the values of all reports; called only if a form needs them.

        Raises:
            ToolkitError: a file cannot be written.
        """
        for each, name in self._requested:
            if name != STDOUT:
                _save(name, each.render_all([document() for document in self._documents], values))
            elif each.values is not None:
                put(each.values(values()))


def _save(name: str, text: str) -> None:
    try:
        Path(name).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(name, error) from error


def save_beside_program(
    args: argparse.Namespace, documents: Sequence[Document], values: Callable[[], Mapping[str, Any]]
) -> tuple[bool, int]:
    """Write the forms that `add_program_output` offers, after the program has ended.

    Returns:
        Whether a form takes the place of the text, and the exit code of a file that could not be written, or 0.
    """
    from gilscope.toolkit.commands.options.programs import STDERR, saved

    code, forms = 0, list(requested(args))
    for each, name in forms:
        code = saved(name, each.render_all(documents, values) + "\n") or code
    return any(name == STDERR for _, name in forms), code


def write_json(name: str | None, values: object) -> bool:
    """Write values as `--json` asks for it.

    Args:
        name: The option's value: a FILE, `STDOUT`, or None if it is not given.
        values: Plain values.

    Returns:
        Whether they take the place of the text on standard output.

    Raises:
        ToolkitError: the file cannot be written.
    """
    if name is None:
        return False
    text = in_json(json.dumps(values, indent=1))
    if name == STDOUT:
        put(text)
        return True
    _save(name, text)
    return False
