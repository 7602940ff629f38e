"""A report in one HTML file, which holds its style and its script, and tells nothing of whose machine it was."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import visible, visible_all
from gilscope.toolkit.redaction import of_this_machine, refuse, without_folders
from gilscope.toolkit.site.page import TemplatePages
from gilscope.toolkit.site.page_values import page_values, shown
from gilscope.toolkit.site.style import load_assets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def single_page(
    name: str, template: str, values: Mapping[str, Any], *, root: str = "", pictures: Sequence[Path] = (),
    hosts: Iterable[str] = (), made: Mapping[str, str] | None = None,
) -> str:
    """Return the page.

    Args:
        name: What it is to be called, for the message that refuses it.
        template: A file of `templates`.
        values: What the template shows, plain; with what `base.html` needs, or the page's `title`.
        root: The folder that paths are made relative to; "": the current one.
        pictures: SVG files that it shows.
        hosts: Names of machines that it tells of, beside this one.
        made: How the page is made, for its foot; see `page_values`.

    Raises:
        ToolkitError: It would tell of a person or a machine.
    """
    drawn = {each.name: each.read_text(encoding="utf-8") for each in pictures}
    within = {"pictures": {file: as_address(svg) for file, svg in drawn.items()}}
    page = TemplatePages(load_assets()).render(template, public(values, root or str(Path.cwd()), made) | within)
    private = of_this_machine(os.environ, hosts)
    refuse(name, (leak for text in (page, *drawn.values()) for leak in private.page_leaks(text)))
    return page


def as_address(svg: str) -> str:
    """Return a picture as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def public(values: Mapping[str, Any], root: str, made: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the values for a template: without folders, every text safe to be shown."""
    if "page" in values:   # made for a site: its texts are safe, and drawings are long
        found = visible_all(dict(values), lambda text: without_folders(text, root))
    else:
        head = page_values(str(values["title"]), f"{values['title']}, as gilscope found it.")
        found = visible_all({**values, **head},
                            lambda text: visible(without_folders(text, root), whole="--json has all of it"))
    # A command that is cut is of no use.
    found["page"]["made"] = shown({name: without_folders(text, root) for name, text in (made or {}).items()})
    return found
