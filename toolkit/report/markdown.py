"""A document as GitHub-flavoured Markdown, for pasting into an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from toolkit.report.document import Banner, Heading, Lines, Table
from toolkit.report.wording import entry_text, mark_text

if TYPE_CHECKING:
    from toolkit.report.document import Document, Section


def render(document: Document) -> str:
    """Return the document as Markdown, without a newline at its end."""
    return "\n\n".join(_section(section) for section in document.sections)


def _section(section: Section) -> str:
    match section:
        case Heading():
            return f"{'#' * section.level} {_escape(section.text)}"
        case Banner():
            return f"> **Warning:** {_escape(section.text)}"
        case Lines():
            title = [f"**{_escape(section.title)}**", ""] if section.title else []
            return "\n".join([*title, *(f"- {_escape(item)}" for item in section.items)])
        case Table():
            return _table(section)
        case _:
            assert_never(section)


def _table(table: Table) -> str:
    titles = [_title(table, index) for index in range(len(table.columns))]
    rules = ["---:" if column.align == "right" else ":---" for column in table.columns]
    rows = [[_escape(entry_text(entry)) for entry in row] for row in table.rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in (titles, rules, *rows)]
    # A table is only a table after an empty line; the hard break keeps each footnote on a line of its own.
    notes = [f"{mark_text(number)} {_escape(text)}  " for number, text in enumerate(table.footnotes, 1)]
    head = [f"**{_escape(table.title)}**", ""] if table.title else []
    return "\n".join([*head, *lines, *(["", *notes] if notes else [])])


def _title(table: Table, index: int) -> str:
    """Return a column's heading; the group's name stands in front of each, as Markdown cannot join columns."""
    column = table.columns[index]
    return f"**{_escape(column.group)}** {_escape(column.title)}" if column.group else _escape(column.title)


def _escape(text: str) -> str:
    r"""Return `text` so that Markdown shows it as it is: `|` would end a cell, `_x_` and `*` are emphasis, `<` a tag.

    The tilde of "~ (floor 1.3 %)" needs it too: two of them strike out what is between.
    """
    one_line = " ".join(text.split())
    for char in "\\`*_<>|~":
        one_line = one_line.replace(char, "\\" + char)
    return one_line
