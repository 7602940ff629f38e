"""Documents as plain values for templates, with the same wording as in the terminal and in Markdown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from gilscope import __version__
from gilscope.toolkit.escaping import visible, visible_all
from gilscope.toolkit.report.document import Banner, GainValue, Heading, Lines, Picture, Quantity, RatioValue, Table
from gilscope.toolkit.report.wording import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.report.document import Column, Document, Entry, Section, Value


def page_values(
    title: str, description: str, *, of: str = "", links: Sequence[Mapping[str, Any]] = (),
    made: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the values that `base.html` needs for the head of a page.

    Args:
        title: The title of the page.
        description: Its content in a sentence, shown by search engines.
        of: The name of the site; not shown without `links`.
        links: The other pages of the site, the home page first: address, title, and `here` for the current page.
        made: How the pages are made: the `command`, the `date`, `by`, who publishes them, `address`, where their site
            will be, and `source`, the address of gilscope's source; each may be "" or missing.
    """
    safe: dict[str, Any] = visible_all({"title": title, "description": description, "of": of})
    return {"version": __version__, "page": safe | {
        "links": list(links), "made": visible_all(dict(made or {}), partial(visible, most=None))}}


def document_values(document: Document, files: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return the sections of a document for `sections.html`, in their order.

    Args:
        document: Any report.
        files: The file or page of the numbers of each build or host, linked from the columns with this source.
    """
    return [section_values(section, files) for section in visible_all(document).sections]


def shown[Value](value: Value) -> Value:
    """Return plain values with every invisible character escaped; nothing is cut: paths of pictures are long."""
    return visible_all(value, partial(visible, most=None))


def section_values(section: Section, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return one section, whose texts must be safe to be shown; for `files` see `document_values`."""
    match section:
        case Heading():
            return {"kind": "heading", "text": section.text, "level": section.level}
        case Banner():
            return {"kind": "banner", "text": section.text}
        case Lines():
            return {"kind": "lines", "title": section.title, "items": list(section.items)}
        case Picture():
            return {"kind": "picture", "title": section.title, "path": section.path}
        case Table():
            return table_values(section, files or {})
        case _:
            assert_never(section)


def table_values(table: Table, files: Mapping[str, str]) -> dict[str, Any]:
    """Return a table: its groups of columns, its columns, its rows of places, its footnotes."""
    links = [files.get(column.source) for column in table.columns]
    return {
        "kind": "table", "title": table.title, "footnotes": list(table.footnotes),
        "groups": _groups(table.columns),
        "columns": [{"title": each.title, "key": each.key, "right": each.align == "right"} for each in table.columns],
        "rows": [[entry_values(entry, file) for entry, file in zip(row, links, strict=True)] for row in table.rows],
    }


def entry_values(entry: Entry, file: str | None) -> dict[str, Any]:
    """Return a place of a table: its text, the number to sort by or None, its marks; a number links `file`."""
    values = shown_value(entry.value) | {"marks": list(entry.marks)}
    return values if file is None or values["sort"] is None else values | {"link": file}


def shown_value(value: Value) -> dict[str, Any]:
    """Return the text of a value, and the number to sort by or None."""
    return {"text": value_text(value), "sort": number_of(value)}


def number_of(value: Value) -> float | None:
    """Return the number by which a table sorts an entry with `value`."""
    match value:
        case str():
            return float(value) if value.isdecimal() else None
        case Quantity():
            return value.value
        case RatioValue(form="cost"):
            return 1 / value.comparison.ratio
        case RatioValue() | GainValue():
            return value.comparison.ratio
        case _:
            assert_never(value)


def _groups(columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """Return the headings above the columns, each with how many it spans; none where no column has one."""
    if not any(column.group for column in columns):
        return []
    groups: list[dict[str, Any]] = []
    for column in columns:
        if groups and column.group and groups[-1]["title"] == column.group:
            groups[-1]["span"] += 1
        else:
            groups.append({"title": column.group, "span": 1})
    return groups
