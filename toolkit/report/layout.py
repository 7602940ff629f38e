"""Which columns of a table stand side by side at a given width."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.report.document import Column


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
    """Return what makes a layout good, the most important first: groups in one piece, side by side, few tables."""
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
