"""Reports: `run_document` makes a document of plain values, a renderer lays it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.report import markdown, terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.report.document import Document

# By name, the default first.  Each returns text without a newline at its end.
RENDERERS: Mapping[str, Callable[[Document], str]] = {
    "terminal": terminal.render_for_stdout,
    "markdown": markdown.render,
}
