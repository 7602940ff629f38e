"""Extension modules of maturin: the crate, its name, and which PyO3 it asks for."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.facts import Binding, Module
from gilscope.toolkit.evaluate.requirements.declared import table_below

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files

_VERSION = re.compile(r"(\d+)(?:\.(\d+))?")
_BINDINGS = {"cffi": Binding.CFFI, "uniffi": Binding.UNKNOWN, "pyo3-ffi": Binding.C_API}


def from_maturin(files: Files, pyproject: Mapping[str, Any]) -> Iterator[Module]:
    """Yield what maturin makes: the crate's library, unless it makes a program."""
    settings = table_below(pyproject, "tool", "maturin")
    file = files.there(str(settings.get("manifest-path", "Cargo.toml")))
    kind = settings.get("bindings", "pyo3")
    if kind == "bin" or file is None:
        return
    crate = manifest(files, file)
    if "bindings" not in settings and not _depends(crate):
        if "lib" not in crate:
            return   # a program
        kind = "cffi"
    package = table_below(crate, "package").get("name", "")
    name = settings.get("module-name") or table_below(crate, "lib").get("name") or str(package).replace("-", "_")
    folder = file.rpartition("/")[0]
    sources = tuple(each for each in files.ending(".rs") if each.startswith(f"{folder}/src/".lstrip("/")))
    yield Module(name=str(name), binding=_BINDINGS.get(str(kind), Binding.PYO3), backend="maturin", file=file, line=1,
                 sources=sources)


def manifest(files: Files, file: str) -> dict[str, Any]:
    """Return what a Cargo.toml holds; empty when there is none that can be read."""
    try:
        return tomllib.loads(files.text(file) or "")
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def pyo3_version(files: Files) -> tuple[int, int] | None:
    """Return which version of PyO3 the project's crates ask for, as (0, 28); None when they do not say."""
    for file in files.named("Cargo.toml"):
        crate = manifest(files, file)
        for table in (crate, table_below(crate, "workspace")):
            asked = table_below(table, "dependencies").get("pyo3")
            text = asked if isinstance(asked, str) else asked.get("version", "") if isinstance(asked, dict) else ""
            if found := _VERSION.search(str(text)):
                return int(found[1]), int(found[2] or 0)
    return None


def _depends(crate: Mapping[str, Any]) -> bool:
    return any(name in table_below(crate, "dependencies") for name in ("pyo3", "pyo3-ffi"))
