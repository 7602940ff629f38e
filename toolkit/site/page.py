"""Render HTML pages from plain values and the templates in this folder.  Only this module imports Jinja2."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup  # Jinja2 needs it, and brings it

if TYPE_CHECKING:
    from gilscope.toolkit.site.style import PageAssets

_UNBROKEN = re.compile(r"(\d{4}-\d\d-\d\d(?: \d\d:\d\d)?|\d[\d.]* %)")
# A script that does nothing.  Chromium parses a page that arrives at once for half a second before it first paints;
# an inline script makes it paint within 10 ms.
PAUSE = ";"
TEMPLATES = Path(__file__).with_name("templates")


class PlainValueEnvironment(jinja2.Environment):
    """Reads nothing of a mapping but its items.

    Jinja2 takes `row.clear` and `row["clear"]` for the method where a dictionary lacks the item, and `row.clear` even
    where it has it: every condition on it would hold.
    """

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Resolve `obj.attribute` in a template."""
        return self._item(obj, attribute) if isinstance(obj, Mapping) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Resolve `obj[argument]` in a template."""
        return self._item(obj, argument) if isinstance(obj, Mapping) else super().getitem(obj, argument)

    def _item(self, mapping: Mapping[Any, Any], key: Any) -> Any:
        return mapping[key] if key in mapping else self.undefined(obj=mapping, name=key)


class TemplatePages:
    """Renders pages that share one look.

    Args:
        look: The style sheet, and the script; pages say the same without it.
        linked: True if both are files beside the pages; False if each page contains them.
    """

    def __init__(self, look: PageAssets, *, linked: bool = False) -> None:
        self._environment = PlainValueEnvironment(
            loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
            trim_blocks=True, lstrip_blocks=True, auto_reload=False)
        self._environment.filters["unbroken"] = unbroken
        self._environment.globals |= {
            "linked": look.files if linked else None, "policy": policy(*([] if linked else [look.style, look.script])),
            "style": look.style, "script": look.script, "pause": PAUSE}

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """Return the page that `template` makes of `values`: every text of them is escaped."""
        return self._environment.get_template(template).render(values)


def unbroken(text: str) -> Markup:
    """Return a text in which no line ends within a day, a time of a day or a share: "2026-11-22", "6.5 %"."""
    return Markup("").join(Markup('<span class="unbroken">{}</span>').format(part) if i % 2 else part
                           for i, part in enumerate(_UNBROKEN.split(text)))


def policy(style: str | None = None, script: str | None = None) -> str:
    """Return a page's Content-Security-Policy: nothing but its own style and script, and pictures beside it.

    Args:
        style: What is within the page; None: its style sheets are files beside it.
        script: Likewise.
    """
    allowed = {"style-src": _source(style), "script-src": f"{_source(script)} {_source(PAUSE)}",
               "img-src": "'self' data:"}
    return "; ".join(["default-src 'none'", *(f"{name} {each}" for name, each in allowed.items()),
                      "base-uri 'none'", "form-action 'none'"])


def _source(text: str | None) -> str:
    if text is None:
        return "'self'"
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
