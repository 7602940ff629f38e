"""A document as GitHub-flavoured Markdown, for pasting into an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gilscope.toolkit.escaping import in_markdown, in_markdown_image, in_url, visible_all, without_commands
from gilscope.toolkit.report.document import Banner, Heading, Lines, Picture, Table
from gilscope.toolkit.report.wording import entry_text, mark_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.document import Column, Document, Section


HEAD = 2   # lines above a table's first row


def render(document: Document) -> str:
    """Return the document as Markdown, without a newline at its end."""
    return without_commands("\n\n".join(_section(section) for section in visible_all(document).sections))


def _section(section: Section) -> str:
    match section:
        case Heading():
            return f"{'#' * section.level} {in_markdown(section.text)}"
        case Banner():
            return f"> **Warning:** {in_markdown(section.text)}"
        case Lines():
            title = [f"**{in_markdown(section.title)}**", ""] if section.title else []
            return "\n".join([*title, *(f"- {in_markdown(item)}" for item in section.items)])
        case Picture():
            return f"![{in_markdown_image(section.title)}]({in_url(section.path)})"
        case Table():
            return _table(section)
        case _:
            assert_never(section)


def _table(table: Table) -> str:
    blocks = [f"**{in_markdown(table.title)}**"] if table.title else []
    parts = _parts(table)
    grids = [_grid(table, part) for part in parts]
    # Details of which no row has any are no table.
    blocks += ["\n".join(grid) for grid in grids if len(grid) > HEAD or len(parts) == 1]
    # The hard break keeps each footnote on a line of its own.
    notes = [f"{mark_text(number)} {in_markdown(text)}  " for number, text in enumerate(table.footnotes, 1)]
    # A table is only a table after an empty line.
    return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else [])])


def _parts(table: Table) -> list[list[int]]:
    """Return the columns of each Markdown table: details in tables of their own if there are several groups."""
    indices = range(len(table.columns))
    if len({column.group for column in table.columns if column.group}) < 2:  # several
        return [list(indices)]
    keys = [i for i in indices if table.columns[i].key]
    rest = [i for i in indices if not table.columns[i].key]
    parts = [[i for i in rest if table.columns[i].detail is detail] for detail in (False, True)]
    return [[*keys, *part] for part in parts if part]


def _grid(table: Table, part: Sequence[int]) -> list[str]:
    columns = [table.columns[i] for i in part]
    rules = ["---:" if column.align == "right" else ":---" for column in columns]
    rows = [[in_markdown(entry_text(row[i])) for i in part] for row in table.rows]
    numbers = sum(not column.key for column in columns)
    shown = [row for row in rows if any(row[-numbers:])]   # in a table of details, not a model that has none
    return ["| " + " | ".join(cells) + " |" for cells in (map(_title, columns), rules, *shown)]


def _title(column: Column) -> str:
    """Return a column's heading; the group's name stands in front of each, as Markdown cannot join columns."""
    return f"**{in_markdown(column.group)}** {in_markdown(column.title)}" if column.group else in_markdown(column.title)
