"""Documents as text for a terminal: tables cut to its width, colours where it has them."""

from __future__ import annotations

import io
import re
import sys
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, assert_never

from rich import box
from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from gilscope.toolkit.escaping import visible_all, without_commands
from gilscope.toolkit.report.document import Banner, GainValue, Heading, Lines, Picture, RatioValue, Table
from gilscope.toolkit.report.wording import ascii_text, entry_text, mark_text, spelling
from gilscope.toolkit.stats.verdict import SpeedVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from gilscope.toolkit.report.document import Column, Document, Entry, Section

WIDTH = 100   # of a report that goes to a file
GAP = 2       # spaces between columns
# One rule under the headings, in ASCII: rich's own SIMPLE box draws it with a character a pipe may not take.
RULED = box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)

_STYLES = {SpeedVerdict.FASTER: "green", SpeedVerdict.SLOWER: "red", SpeedVerdict.SAME: "dim",
           SpeedVerdict.CANNOT_TELL: "yellow"}


def render(document: Document, *, width: int = WIDTH, ascii_only: bool = False) -> str:
    """Return the document as text without colours, no line longer than `width` unless a single word is."""
    return _text(document, _plain_console(width), ascii_text if ascii_only else str)


def render_for_stdout(document: Document) -> str:
    """Return the document as fits standard output: in its encoding, on a terminal in its width and in colour."""
    spell = spelling(sys.stdout.encoding)
    if not sys.stdout.isatty():
        return _text(document, _plain_console(WIDTH), spell)
    here = Console()
    console = Console(file=io.StringIO(), width=here.width, force_terminal=True, no_color=here.no_color)
    return _text(document, console, spell)


def _plain_console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)


def _text(document: Document, console: Console, spell: Callable[[str], str]) -> str:
    with console.capture() as captured:
        _print(visible_all(document), console, spell)
    # rich fills lines up to the width.
    return without_commands("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _print(document: Document, console: Console, spell: Callable[[str], str]) -> None:
    for number, section in enumerate(document.sections):
        if number:
            console.line()
        for renderable in _section(section, console.width, spell):
            console.print(renderable)


def _section(section: Section, width: int, spell: Callable[[str], str]) -> list[RenderableType]:
    match section:
        case Heading():
            return _heading(section, spell)
        case Banner():
            return [Text(f"WARNING: {spell(section.text)}", style="bold yellow")]
        case Lines():
            title: list[RenderableType] = [Text(spell(section.title), style="bold")] if section.title else []
            return [*title, *(_hanging(spell(item), width) for item in section.items)]
        case Picture():
            return [Text(spell(f"{section.title}: {section.path}"), overflow="fold")]
        case Table():
            return _table(section, width, spell)
        case _:
            assert_never(section)


def _heading(section: Heading, spell: Callable[[str], str]) -> list[RenderableType]:
    text = spell(section.text)
    under = {1: "=", 2: "-"}.get(section.level)
    return [Text(text, style="bold"), *([Text(under * len(text), style="bold")] if under else [])]


def _hanging(text: str, width: int) -> RenderableType:
    """Return `text` wrapped with its first line standing out; commands, and numbers of percent, stay whole."""
    kept = re.sub(r" %|`[^`]*`", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    lines = textwrap.wrap(kept, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False,
                          break_long_words=False)
    return Text("\n".join(lines).replace("\N{NO-BREAK SPACE}", " "), overflow="fold")


def _table(table: Table, width: int, spell: Callable[[str], str]) -> list[RenderableType]:
    cells = [[spell(entry_text(entry)) for entry in row] for row in table.rows]
    widths = [
        max(len(line) for line in (column.title, *(row[i] for row in cells))) for i, column in enumerate(table.columns)
    ]
    _make_room(table.columns, widths)
    # A column that does not fit beside the keys even alone is wrapped.
    room = width - sum(widths[i] + GAP for i, column in enumerate(table.columns) if column.key)
    widths = [each if column.key else min(each, max(room, 1))
              for each, column in zip(widths, table.columns, strict=True)]
    parts = split_columns(table.columns, widths, width, GAP)
    shown: list[RenderableType] = [Text(spell(table.title), style="bold")] if table.title else []
    # Details of which no row has any are no table.
    filled = [p for p in parts if any(row[i] for row in cells for i in p if not table.columns[i].key)] or parts[:1]
    for number, part in enumerate(filled):
        shown += [Text("")] if number else []
        shown += [_groups_line(table.columns, widths, part, spell), _rich_table(table, cells, widths, part, spell)]
    notes = [_hanging(f"{spell(mark_text(n))} {spell(text)}", width) for n, text in enumerate(table.footnotes, 1)]
    return [*shown, *notes]


def _make_room(columns: Sequence[Column], widths: list[int]) -> None:
    """Widen the last column of each group whose name and a space do not fit over its columns."""
    blocks: dict[tuple[str, bool], list[int]] = {}
    for i, column in enumerate(columns):
        if column.group:
            blocks.setdefault((column.group, column.detail), []).append(i)
    for (group, _), block in blocks.items():
        widths[block[-1]] += max(0, len(group) + 1 - _width(widths, block))


def _width(widths: Sequence[int], block: Sequence[int]) -> int:
    return sum(widths[i] for i in block) + GAP * (len(block) - 1)


def _groups_line(
    columns: Sequence[Column], widths: Sequence[int], part: Sequence[int], spell: Callable[[str], str],
) -> RenderableType:
    """Return the names of the groups, each with a rule over all of its columns; nothing where there are none."""
    if not any(columns[i].group for i in part):
        return Group()
    names = []
    for group, block in groupby(part, key=lambda i: columns[i].group):
        width = _width(widths, list(block))
        names.append(f"{spell(group)} ".ljust(width, "-") if group else " " * width)
    return Text((" " * GAP).join(names), style="bold")


def _rich_table(
    table: Table, cells: Sequence[Sequence[str]], widths: Sequence[int], part: Sequence[int],
    spell: Callable[[str], str],
) -> RichTable:
    """Return the columns `part` of the table without the names of their groups."""
    rich = RichTable(box=RULED, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for i in part:
        column = table.columns[i]
        # Wrapping instead of an ellipsis where even one column is wider than the terminal: nothing is cut off.
        rich.add_column(
            Text(spell(column.title), style="bold"), justify=column.align, overflow="fold", min_width=widths[i])
    numbers = [i for i in part if not table.columns[i].key]
    for row, texts in zip(table.rows, cells, strict=True):
        if numbers and not any(texts[i] for i in numbers):
            continue   # in a table of details, a model that has none
        rich.add_row(*(Text(texts[i], style=_style(row[i])) for i in part))
    return rich


def _style(entry: Entry) -> str:
    match entry.value:
        case GainValue(comparison=comparison, best=best):
            return _STYLES[comparison.verdict()] + (" bold" if best else "")
        case RatioValue(comparison=comparison, form="verdict" | "cost"):
            return _STYLES[comparison.verdict()]
        case SpeedVerdict():
            return _STYLES[entry.value]
        case str() if entry.marks:   # the reason why there is no number
            return "dim"
        case _:
            return ""


def split_columns(columns: Sequence[Column], widths: Sequence[int], width: int, gap: int) -> list[list[int]]:
    """Return the columns' indices, one list per table, the key columns repeated in each.

    Everything in one table where it fits.  Else either groups with all their columns are dealt out to tables, or first
    the main and then the detail columns of each group: whichever keeps groups in one piece and puts more of them side
    by side, as builds side by side are what a reader compares.
    """
    keys = [i for i, column in enumerate(columns) if column.key]
    rest = [i for i, column in enumerate(columns) if not column.key]
    room = width - sum(widths[i] + gap for i in keys)

    def size(part: Sequence[int]) -> int:
        return sum(widths[i] for i in part) + gap * max(0, len(part) - 1)

    if size(rest) <= room or not rest:
        return [[*keys, *rest]]
    main, detail = [i for i in rest if not columns[i].detail], [i for i in rest if columns[i].detail]
    layouts = [_deal(columns, rest, size, room)]
    if main and detail:
        layouts.append(_deal(columns, main, size, room) + _deal(columns, detail, size, room))
    best = max(layouts, key=lambda parts: _merit(columns, parts))
    return [[*keys, *part] for part in best]


def _merit(columns: Sequence[Column], parts: Sequence[Sequence[int]]) -> tuple[bool, int, int]:
    """Return the merits of a layout, the most important first: whole groups, side by side, few tables."""
    pieces = [(columns[i].group, columns[i].detail, number) for number, part in enumerate(parts) for i in part]
    whole = len(set(pieces)) == len({piece[:2] for piece in pieces})
    return whole, len({columns[i].group for i in parts[0]}), -len(parts)


def _deal(
    columns: Sequence[Column], indices: Sequence[int], size: Callable[[Sequence[int]], int], room: int,
) -> list[list[int]]:
    """Fill tables with whole groups; a group that is too wide for a table alone is dealt out column by column."""
    blocks: list[list[int]] = []
    for _, members in groupby(indices, key=lambda i: columns[i].group):
        block = list(members)
        blocks += [block] if size(block) <= room else [[i] for i in block]
    parts: list[list[int]] = []
    for block in blocks:
        if parts and size([*parts[-1], *block]) <= room:
            parts[-1] += block
        else:
            parts.append(list(block))
    return parts
