"""Documents as text for a terminal: tables cut to its width, colours where it has them.

The lines are laid out here.  Only colours need rich, whose import and layout would delay every report.
"""

from __future__ import annotations

import sys
import textwrap
from io import StringIO
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, assert_never
from unicodedata import combining, east_asian_width

from gilscope.toolkit.escaping import visible_all, without_commands
from gilscope.toolkit.report.document import (
    Banner,
    CostValue,
    GainValue,
    Heading,
    Lines,
    Picture,
    RatioValue,
    Table,
    VerdictWord,
)
from gilscope.toolkit.report.table.judgement import judge_comparison
from gilscope.toolkit.report.wording import ascii_text, entry_text, mark_text, spelling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import Console

    from gilscope.toolkit.report.document import Column, Document, Entry, Section

    type Line = Sequence[tuple[str, str]]   # pieces of text, each with its style as rich calls it

WIDTH = 100   # of a report that goes to a file
GAP = 2       # spaces between columns
BOLD = "bold"

_STYLES = {"faster": "green", "slower": "red", "same": "dim", "cannot tell": "yellow"}


def render(document: Document, *, width: int = WIDTH, ascii_only: bool = False) -> str:
    """Return the document as text without colours, no line longer than `width`."""
    return _plain(_lines(document, width, ascii_text if ascii_only else str))


def render_for_stdout(document: Document) -> str:
    """Return the document as fits standard output: in its encoding, on a terminal in its width and in colour."""
    spell = spelling(sys.stdout.encoding)
    if not sys.stdout.isatty():
        return _plain(_lines(document, WIDTH, spell))
    from rich.console import Console

    console = Console()
    return _coloured(_lines(document, console.width, spell), console)


def _plain(lines: Iterable[Line]) -> str:
    return without_commands("\n".join("".join(text for text, _ in line).rstrip() for line in lines))


def _coloured(lines: Iterable[Line], terminal: Console) -> str:
    """Return the lines with the escape sequences of their styles, as far as `terminal` has them."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=StringIO(), width=terminal.width, force_terminal=True, no_color=terminal.no_color)
    with console.capture() as captured:
        for line in lines:
            console.print(Text.assemble(*line), no_wrap=True, overflow="ignore", crop=False)
    return without_commands(captured.get().removesuffix("\n"))


def _lines(document: Document, width: int, spell: Callable[[str], str]) -> Iterator[Line]:
    for number, section in enumerate(visible_all(document).sections):
        if number:
            yield ()
        yield from _section(section, width, spell)


def _section(section: Section, width: int, spell: Callable[[str], str]) -> Iterator[Line]:
    match section:
        case Heading():
            yield from _heading(section, width, spell)
        case Banner():
            yield from _wrapped(f"WARNING: {spell(section.text)}", width, "bold yellow")
        case Lines():
            if section.heading:
                yield from _wrapped(spell(section.heading), width, BOLD)
            for item in section.items:
                yield from _hanging(spell(item), width)
        case Picture():
            yield from _wrapped(spell(f"{section.title}: {section.path}"), width)
        case Table():
            yield from _table(section, width, spell)
        case _:
            assert_never(section)


def _heading(section: Heading, width: int, spell: Callable[[str], str]) -> Iterator[Line]:
    text = spell(section.text)
    yield from _wrapped(text, width, BOLD)
    if under := {1: "=", 2: "-"}.get(section.level):
        yield ((under * min(cell_width(text), width), BOLD),)


def _wrapped(text: str, width: int, style: str = "") -> Iterator[Line]:
    """Yield the text in lines; a word that does not fit into one is cut."""
    if cell_width(text) <= width and "\n" not in text:
        yield ((text, style),)
        return
    for line in text.splitlines() or [""]:
        for part in textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False) or [""]:
            yield from (((piece, style),) for piece in cut(part, width))


def _hanging(text: str, width: int) -> Iterator[Line]:
    """Yield `text` wrapped with its first line standing out; a number stays with its percent sign."""
    kept = text.replace(" %", "\N{NO-BREAK SPACE}%")
    for line in textwrap.wrap(kept, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False,
                              break_long_words=False):
        yield from (((piece, ""),) for piece in cut(line.replace("\N{NO-BREAK SPACE}", " "), width))


def cell_width(text: str) -> int:
    """Return the number of columns that a terminal shows the text in."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def cut(text: str, width: int) -> Iterator[str]:
    """Yield the text in pieces that a terminal shows in at most `width` columns; a character may be wider."""
    while cell_width(text) > width:
        end = 1
        while cell_width(text[:end + 1]) <= width:
            end += 1
        yield text[:end]
        text = text[end:]
    yield text


def _table(table: Table, width: int, spell: Callable[[str], str]) -> Iterator[Line]:
    cells = [[spell(entry_text(entry)) for entry in row] for row in table.rows]
    titles = [spell(column.title) for column in table.columns]
    widths = [max(map(cell_width, (title, *(row[i] for row in cells)))) for i, title in enumerate(titles)]
    _make_room(table.columns, widths)
    # A column that does not fit beside the keys even alone is wrapped.
    room = width - sum(widths[i] + GAP for i, column in enumerate(table.columns) if column.key)
    widths = [each if column.key else min(each, max(room, 1))
              for each, column in zip(widths, table.columns, strict=True)]
    parts = split_columns(table.columns, widths, width, GAP)
    if table.heading:
        yield from _wrapped(spell(table.heading), width, BOLD)
    # Details of which no row has any are no table.
    filled = [p for p in parts if any(row[i] for row in cells for i in p if not table.columns[i].key)] or parts[:1]
    for number, part in enumerate(filled):
        if number:
            yield ()
        yield from _part(table, [titles, *cells], _narrowed(widths, part, width), part, spell)
    for number, text in enumerate(table.footnotes, 1):
        yield from _hanging(f"{spell(mark_text(number))} {spell(text)}", width)


def _narrowed(widths: Sequence[int], part: Sequence[int], width: int) -> Sequence[int]:
    """Return the widths with the widest columns of a part narrowed, where keys alone are wider than the terminal."""
    narrowed = [*widths]
    while _width(narrowed, part) > width:
        widest = max(part, key=narrowed.__getitem__)
        if narrowed[widest] == 1:
            break
        narrowed[widest] -= 1
    return narrowed


def _part(
    table: Table, texts: Sequence[Sequence[str]], widths: Sequence[int], part: Sequence[int],
    spell: Callable[[str], str],
) -> Iterator[Line]:
    """Yield the lines of the columns `part`: names of groups, titles, a rule, and rows.

    Args:
        table: The table.
        texts: Its titles, and the texts of each row.
        widths: Of all of its columns.
        part: The columns of this part.
        spell: Replaces what the output's encoding lacks.
    """
    if any(table.columns[i].group for i in part):
        yield ((_groups_line(table.columns, widths, part, spell), BOLD),)
    titles, *cells = texts
    yield from _row(table.columns, widths, part, titles, [BOLD] * len(titles), at_bottom=True)
    yield (("-" * _width(widths, part), ""),)
    numbers = [i for i in part if not table.columns[i].key]
    for row, shown in zip(table.rows, cells, strict=True):
        if numbers and not any(shown[i] for i in numbers):
            continue   # in a table of details, a model that has none
        yield from _row(table.columns, widths, part, shown, [*map(_style, row)])


def _row(
    columns: Sequence[Column], widths: Sequence[int], part: Sequence[int], texts: Sequence[str], styles: Sequence[str],
    *, at_bottom: bool = False,
) -> Iterator[Line]:
    """Yield the lines of a row; a cell that is wider than its column is wrapped rather than cut off."""
    wrapped = [[text for ((text, _),) in _wrapped(texts[i], widths[i])] for i in part]
    if at_bottom:
        height = max(map(len, wrapped))
        wrapped = [[""] * (height - len(each)) + each for each in wrapped]
    for line in zip_longest(*wrapped, fillvalue=""):
        pieces: list[tuple[str, str]] = []
        for i, text in zip(part, line, strict=True):
            space = " " * (widths[i] - cell_width(text))
            pieces += [(" " * GAP, "")] if pieces else []
            pieces.append((space + text if columns[i].align == "right" else text + space, styles[i]))
        yield pieces


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
) -> str:
    """Return the names of the groups, each with a rule over all of its columns."""
    names = []
    for group, block in groupby(part, key=lambda i: columns[i].group):
        width = _width(widths, list(block))
        names.append(f"{spell(group)} ".ljust(width, "-") if group else " " * width)
    return (" " * GAP).join(names)


def _style(entry: Entry) -> str:
    if isinstance(entry.value, GainValue):
        return _STYLES[judge_comparison(entry.value.comparison)] + (" bold" if entry.value.best else "")
    if isinstance(entry.value, RatioValue | CostValue):
        return _STYLES[judge_comparison(entry.value.comparison)]
    if isinstance(entry.value, VerdictWord):
        return _STYLES[entry.value.word]
    # A text with marks is the reason why there is no number.
    return "dim" if entry.doubtful or (isinstance(entry.value, str) and entry.marks) else ""


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
