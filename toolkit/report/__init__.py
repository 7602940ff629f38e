"""Reports: `run_document` makes a document of plain values, a renderer lays it out.

`DOCUMENT_FORMATS` lists the forms that a document can be written in; `gilscope.toolkit.commands.output.reports` gives
every command that reports an option for each.  A race report is no document: see `race.report.formats`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.report.document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormat:
    """A form of a command's report, and the option that asks for it.

    It has either `document` or `values`; both return text without a newline at its end.
    """

    name: str       # the option: "markdown" is --markdown
    suffix: str     # the end of the name of every FILE in this form
    title: str      # the form's name in --help
    purpose: str    # a sentence for --help: when a user wants this form
    document: Callable[[Document], str] | None = None         # renders one report of a command that may have several
    values: Callable[[Mapping[str, Any]], str] | None = None  # renders the values of all of the command's reports

    @property
    def option(self) -> str:
        """The option as a user writes it."""
        return f"--{self.name}"

    def render_all(self, documents: Sequence[Document], values: Callable[[], Mapping[str, Any]]) -> str:
        """Return all reports of a command in this form, without a newline at the end.

        Args:
            documents: The reports.
            values: Returns the values of all reports; called only if this form needs them.
        """
        if self.values is not None:
            return self.values(values())
        assert self.document is not None, self.name
        return "\n\n".join(map(self.document, documents))


# A renderer is imported when it is needed: `--help` of each command needs its option alone.
def _markdown(document: Document) -> str:
    from gilscope.toolkit.report.markdown import render

    return render(document)


def _json(values: Mapping[str, Any]) -> str:
    from gilscope.toolkit.report.json_ import render

    return render(values)


# The terminal's form needs no option: `terminal.render_for_stdout`.
DOCUMENT_FORMATS: tuple[DocumentFormat, ...] = (
    DocumentFormat(name="markdown", suffix=".md", title="Markdown", purpose="Use it to paste a report into an issue.",
                   document=_markdown),
    DocumentFormat(name="json", suffix=".json", title="JSON", purpose="Use it in scripts.", values=_json),
)
