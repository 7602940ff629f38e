"""From what a project says that builds it to the extension modules that this names, and to what only a build can tell.

Source of the names: PEP 517's `build-backend`, and the settings of each tool's documentation.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.discover.cargo import from_maturin
from gilscope.toolkit.evaluate.project.extensions.discover.cmake import from_cmake
from gilscope.toolkit.evaluate.project.extensions.discover.meson import from_meson
from gilscope.toolkit.evaluate.project.extensions.discover.setuptools_ import from_script, from_settings
from gilscope.toolkit.evaluate.project.extensions.discover.strays import compiled_sources, stray_modules
from gilscope.toolkit.evaluate.project.extensions.facts import Binding, Module
from gilscope.toolkit.evaluate.requirements.declared import table_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files

USUAL = "setuptools.build_meta"   # where nothing else is named.  Source: PEP 517
# Build backends that make extension modules and nothing else; what they make is known once they have made it.
_OTHERS = {"sipbuild.api": "SIP", "enscons.api": "SCons", "pymsbuild": "pymsbuild", "cmeel.build": "cmeel"}
PURE = ("flit", "uv_build", "whey")   # these compile nothing, whatever lies beside
# Hooks of hatchling that make extension modules.
_HATCH = {"mypyc": Binding.MYPYC, "cython": Binding.CYTHON, "scikit-build": Binding.UNKNOWN, "cargo": Binding.PYO3,
          "meson": Binding.UNKNOWN, "zig": Binding.C_API, "pyo3": Binding.PYO3}


def pyproject_of(files: Files) -> dict[str, Any]:
    """Return what pyproject.toml holds, empty where there is none that can be read; `project.discovery` says so."""
    try:
        return tomllib.loads(files.text("pyproject.toml") or "")
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def named_modules(files: Files) -> tuple[list[Module], list[str]]:
    """Return the extension modules that the build's configuration names, and what may make more, one sentence each."""
    pyproject = pyproject_of(files)
    backend = str(table_below(pyproject, "build-system").get("build-backend", USUAL))
    modules = list(_by_backend(files, pyproject, backend))
    unsure = list(_hooks(files, pyproject, backend, modules))
    if not modules and not unsure and not backend.startswith(PURE):
        modules = list(stray_modules(files))
        if not modules and (source := next(iter(compiled_sources(files)), "")):
            unsure.append(f"what its build makes of {source} is seen when it is built")
    if not modules and not unsure and (name := next((_OTHERS[each] for each in _OTHERS if each in backend), "")):
        unsure.append(f"what {name} makes is seen when it is built")
    return modules, unsure


def _by_backend(files: Files, pyproject: Mapping[str, Any], backend: str) -> Iterator[Module]:
    by_name: dict[str, Callable[[], Iterator[Module]]] = {
        "mesonpy": lambda: from_meson(files),
        "maturin": lambda: from_maturin(files, pyproject),
        "scikit_build_core.build": lambda: from_cmake(files, "scikit-build-core"),
        "py_build_cmake": lambda: from_cmake(files, "py-build-cmake"),
        "hatchling": lambda: _by_hatch(files, pyproject),
        "poetry": lambda: _by_poetry(files, pyproject),
        "pdm": lambda: _by_pdm(files, pyproject),
        **dict.fromkeys(PURE, lambda: iter(())),
    }
    chosen = next((found for name, found in by_name.items() if backend.startswith(name)), None)
    # What is none of these is setuptools, or a backend of the project's own, which wraps it as a rule.
    yield from chosen() if chosen else _by_setuptools(files, pyproject)


def _by_poetry(files: Files, pyproject: Mapping[str, Any]) -> Iterator[Module]:
    build = table_below(pyproject, "tool", "poetry").get("build")
    script = build if isinstance(build, str) else build.get("script") if isinstance(build, dict) else None
    if isinstance(script, str):
        yield from from_script(files, script)


def _by_pdm(files: Files, pyproject: Mapping[str, Any]) -> Iterator[Module]:
    if table_below(pyproject, "tool", "pdm", "build").get("run-setuptools"):
        yield from from_script(files, "setup.py")


def _by_setuptools(files: Files, pyproject: Mapping[str, Any]) -> Iterator[Module]:
    found = [*from_script(files, "setup.py"), *from_settings(files, pyproject)]
    yield from found
    script = files.text("setup.py") or ""
    # scikit-build's own `setup` runs CMake; so do most `CMakeExtension`s, whose module is named in setup.py.
    if not any(each.name for each in found) and ("skbuild" in script or "CMakeExtension" in script):
        yield from from_cmake(files, "scikit-build" if "skbuild" in script else "setuptools with CMake")
    if not found and "pbr" in script and "rust" in script:
        yield from from_maturin(files, pyproject)


def _by_hatch(files: Files, pyproject: Mapping[str, Any]) -> Iterator[Module]:
    for hook in _hatch_hooks(pyproject):
        if hook == "scikit-build":
            yield from from_cmake(files, "hatchling with scikit-build-core")
        elif hook == "meson":
            yield from from_meson(files)
        elif hook in _HATCH:
            yield Module(name="", binding=_HATCH[hook], backend=f"hatchling's hook {hook}", file="pyproject.toml",
                         line=1)


def _hatch_hooks(pyproject: Mapping[str, Any]) -> list[str]:
    build = table_below(pyproject, "tool", "hatch", "build")
    return [*dict.fromkeys([*table_below(build, "hooks"), *table_below(build, "targets", "wheel", "hooks")])]


def _hooks(
    files: Files, pyproject: Mapping[str, Any], backend: str, modules: list[Module],
) -> Iterator[str]:
    """Yield what runs code of the project's when it is built, as far as that may make extension modules."""
    if backend.startswith("hatchling") and "custom" in _hatch_hooks(pyproject):
        hook = table_below(pyproject, "tool", "hatch", "build", "hooks", "custom").get("path", "hatch_build.py")
        if _compiles(files.text(str(hook)) or ""):
            yield f"what {hook} compiles is seen when it is built"
    if backend.startswith("pdm"):
        hook = table_below(pyproject, "tool", "pdm", "build").get("custom-hook", "pdm_build.py")
        if _compiles(files.text(str(hook)) or "") and not modules:
            yield f"what {hook} compiles is seen when it is built"
    if backend.startswith("poetry") and not modules and "build" in table_below(pyproject, "tool", "poetry"):
        yield "what poetry's build script compiles is seen when it is built"


def _compiles(text: str) -> bool:
    """Return whether a build hook may compile something, by what it names."""
    words = ("Extension", "cythonize", "mypycify", "infer_tag", "pure_python", "ext_modules", "cffi", "cargo", "cmake",
             "gcc", "subprocess", "build_ext")
    return any(word in text for word in words)
