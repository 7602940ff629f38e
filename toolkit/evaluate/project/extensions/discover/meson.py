"""Extension modules of meson-python: `py.extension_module(...)` in the meson.build files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.discover.call_syntax import arguments, binding_of
from gilscope.toolkit.evaluate.project.extensions.facts import Module
from gilscope.toolkit.evaluate.project.extensions.scan.lexing import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files

_COMMENT = re.compile(r"('(?:[^'\\\n]|\\.)*')|#[^\n]*")
_MODULE = re.compile(r"\.extension_module\s*\(")
_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'")
_SUBDIR = re.compile(r"subdir\s*:\s*'([^']*)'")


def from_meson(files: Files) -> Iterator[Module]:
    """Yield what the meson.build files make."""
    for file in files.named("meson.build"):
        text = _COMMENT.sub(lambda match: match[1] or "", files.text(file) or "")
        for match in _MODULE.finditer(text):
            given = arguments(text, match.end() - 1)
            first = _STRING.match(given.lstrip())
            name = first[1] if first else ""
            subdir = _SUBDIR.search(given)
            folder = [part for part in (subdir[1].split("/") if subdir else ()) if part.isidentifier()]
            sources = tuple(found for each in _STRING.findall(given) if (found := files.there(each, file)))
            yield Module(name=".".join([*folder, name]) if name else "", binding=binding_of(files, sources),
                         backend="meson-python", file=file, line=line_of(text, match.start()), sources=sources)
