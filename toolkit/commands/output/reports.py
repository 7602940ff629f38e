"""Where the reports of a command go: text as they come, other forms as `options.files` reads them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.options.files import STDOUT
from gilscope.toolkit.commands.streams import put
from gilscope.toolkit.errors import ToolkitError, cannot_write
from gilscope.toolkit.escaping import in_json
from gilscope.toolkit.report import markdown, terminal
from gilscope.toolkit.report.wording import spelling

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.report.document import Document


def refuse_beside_dry_run(args: argparse.Namespace) -> None:
    """Refuse a report of what is not going to be measured.

    Raises:
        ToolkitError: one is asked for with --dry-run.
    """
    if args.dry_run and (args.json is not None or args.markdown is not None):
        raise ToolkitError("--dry-run measures nothing, so there is no report: leave --json and --markdown out")


class Output:
    """The reports of one command: text as they come, files when all are there."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._json: str | None = args.json
        self._markdown: str | None = args.markdown
        self._documents: list[Document] = []

    def show(self, document: Document, whole: Document | None = None) -> None:
        """Print a report, unless JSON has its place.

        Args:
            document: As a terminal shows it.
            whole: As Markdown has it, where that is more.
        """
        whole = whole or document
        if self._json != STDOUT:
            between = "\n" if self._documents else ""
            put(between + self._text(whole if self._markdown == STDOUT else document))
        self._documents.append(whole)

    def _text(self, document: Document) -> str:
        if self._markdown == STDOUT:
            return spelling(sys.stdout.encoding)(markdown.render(document))
        return terminal.render_for_stdout(document)

    def finish(self, values: Callable[[], Mapping[str, Any]]) -> None:
        """Write what else was asked for.

        Args:
            values: Returns what JSON is to say; called only where it is asked for.

        Raises:
            ToolkitError: a file cannot be written.
        """
        if self._json is not None:
            text = in_json(json.dumps(values(), indent=1, allow_nan=False))
            if self._json == STDOUT:
                put(text)
            else:
                _save(self._json, text)
        if self._markdown not in {None, STDOUT}:
            _save(str(self._markdown), "\n\n".join(map(markdown.render, self._documents)))


def _save(name: str, text: str) -> None:
    try:
        Path(name).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(name, error) from error
