"""Find the extension modules that a project's build configuration names: one reader for each build backend.

Sources of the names: PEP 517's `build-backend`; the documentation of each backend's settings; PEP 703 and PEP 803
(abi3t, 3.15) for the limited API.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding, ExtensionModule
from gilscope.toolkit.evaluate.project.extensions.project_files import arguments, binding_of
from gilscope.toolkit.evaluate.project.extensions.setuptools_script import from_script, from_settings
from gilscope.toolkit.evaluate.project.extensions.source_text import line_of
from gilscope.toolkit.evaluate.requirements.declared import table_below
from gilscope.toolkit.evaluate.sections import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gilscope.toolkit.evaluate.project.extensions.project_files import ProjectFiles

DEFAULT_BACKEND = "setuptools.build_meta"   # Source: PEP 517
# Backends for extension modules whose configuration is not read: only a build shows their modules.
_COMPILING_BACKENDS = {"sipbuild.api": "SIP", "enscons.api": "SCons", "pymsbuild": "pymsbuild", "cmeel.build": "cmeel"}
PURE_BACKENDS = ("flit", "uv_build", "whey")   # they compile nothing, even if the project contains C sources
# hatchling hooks that make extension modules.
_HATCH_HOOKS = {"mypyc": Binding.MYPYC, "cython": Binding.CYTHON, "scikit-build": Binding.UNKNOWN,
                "cargo": Binding.PYO3, "meson": Binding.UNKNOWN, "zig": Binding.C_API, "pyo3": Binding.PYO3}


def read_pyproject(files: ProjectFiles) -> dict[str, Any]:
    """Return the contents of pyproject.toml, empty if it cannot be read; `project.discovery` reports that."""
    try:
        return tomllib.loads(files.text("pyproject.toml") or "")
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def named_modules(files: ProjectFiles) -> tuple[list[ExtensionModule], list[str]]:
    """Return the modules that the build configuration names, and a sentence for each thing that may make more."""
    pyproject = read_pyproject(files)
    backend = str(table_below(pyproject, "build-system").get("build-backend", DEFAULT_BACKEND))
    modules = list(_by_backend(files, pyproject, backend))
    unsure = list(_hooks(files, pyproject, backend, modules))
    if not modules and not unsure and not backend.startswith(PURE_BACKENDS):
        modules = list(stray_modules(files))
        if not modules and (source := next(iter(compiled_sources(files)), "")):
            unsure.append(f"only a build shows what is made of {source}")
    if not modules and not unsure and (
            name := next((name for module, name in _COMPILING_BACKENDS.items() if module in backend), "")):
        unsure.append(f"only a build shows what {name} makes")
    return modules, unsure


def _by_backend(files: ProjectFiles, pyproject: Mapping[str, Any], backend: str) -> Iterator[ExtensionModule]:
    by_name: dict[str, Callable[[], Iterator[ExtensionModule]]] = {
        "mesonpy": lambda: from_meson(files),
        "maturin": lambda: from_maturin(files, pyproject),
        "scikit_build_core.build": lambda: from_cmake(files, "scikit-build-core"),
        "py_build_cmake": lambda: from_cmake(files, "py-build-cmake"),
        "hatchling": lambda: _by_hatch(files, pyproject),
        "poetry": lambda: _by_poetry(files, pyproject),
        "pdm": lambda: _by_pdm(files, pyproject),
        **dict.fromkeys(PURE_BACKENDS, lambda: iter(())),
    }
    chosen = next((found for name, found in by_name.items() if backend.startswith(name)), None)
    # Any other backend is setuptools, or the project's own, which usually wraps setuptools.
    yield from chosen() if chosen else _by_setuptools(files, pyproject)


def _by_poetry(files: ProjectFiles, pyproject: Mapping[str, Any]) -> Iterator[ExtensionModule]:
    build = table_below(pyproject, "tool", "poetry").get("build")
    script = build if isinstance(build, str) else build.get("script") if isinstance(build, dict) else None
    if isinstance(script, str):
        yield from from_script(files, script)


def _by_pdm(files: ProjectFiles, pyproject: Mapping[str, Any]) -> Iterator[ExtensionModule]:
    if table_below(pyproject, "tool", "pdm", "build").get("run-setuptools"):
        yield from from_script(files, "setup.py")


def _by_setuptools(files: ProjectFiles, pyproject: Mapping[str, Any]) -> Iterator[ExtensionModule]:
    found = [*from_script(files, "setup.py"), *from_settings(files, pyproject)]
    yield from found
    script = files.text("setup.py") or ""
    # scikit-build's `setup` runs CMake, as do most `CMakeExtension` classes, whose module setup.py names.
    if not any(each.name for each in found) and ("skbuild" in script or "CMakeExtension" in script):
        yield from from_cmake(files, "scikit-build" if "skbuild" in script else "setuptools with CMake")
    if not found and "pbr" in script and "rust" in script:
        yield from from_maturin(files, pyproject)


def _by_hatch(files: ProjectFiles, pyproject: Mapping[str, Any]) -> Iterator[ExtensionModule]:
    for hook in _hatch_hooks(pyproject):
        if hook == "scikit-build":
            yield from from_cmake(files, "hatchling with scikit-build-core")
        elif hook == "meson":
            yield from from_meson(files)
        elif hook in _HATCH_HOOKS:
            yield ExtensionModule(name="", binding=_HATCH_HOOKS[hook], backend=f"hatchling's hook {hook}",
                                  file="pyproject.toml", line=1)


def _hatch_hooks(pyproject: Mapping[str, Any]) -> list[str]:
    build = table_below(pyproject, "tool", "hatch", "build")
    return [*dict.fromkeys([*table_below(build, "hooks"), *table_below(build, "targets", "wheel", "hooks")])]


def _hooks(
    files: ProjectFiles, pyproject: Mapping[str, Any], backend: str, modules: list[ExtensionModule],
) -> Iterator[str]:
    """Yield a sentence for each build hook of the project that may make extension modules."""
    if backend.startswith("hatchling") and "custom" in _hatch_hooks(pyproject):
        hook = table_below(pyproject, "tool", "hatch", "build", "hooks", "custom").get("path", "hatch_build.py")
        if _compiles(files.text(str(hook)) or ""):
            yield f"only a build shows what {hook} compiles"
    if backend.startswith("pdm"):
        hook = table_below(pyproject, "tool", "pdm", "build").get("custom-hook", "pdm_build.py")
        if _compiles(files.text(str(hook)) or "") and not modules:
            yield f"only a build shows what {hook} compiles"
    if backend.startswith("poetry") and not modules and "build" in table_below(pyproject, "tool", "poetry"):
        yield "only a build shows what poetry's build script compiles"


def _compiles(text: str) -> bool:
    """Return True if a build hook may compile something, judged by the names in its source."""
    words = ("Extension", "cythonize", "mypycify", "infer_tag", "pure_python", "ext_modules", "cffi", "cargo", "cmake",
             "gcc", "subprocess", "build_ext")
    return any(word in text for word in words)


_PYO3_VERSION = re.compile(r"(\d+)(?:\.(\d+))?")
_MATURIN_BINDINGS = {"cffi": Binding.CFFI, "uniffi": Binding.UNKNOWN, "pyo3-ffi": Binding.C_API}


def from_maturin(files: ProjectFiles, pyproject: Mapping[str, Any]) -> Iterator[ExtensionModule]:
    """Yield the module that maturin makes: the crate's library, unless the crate is a program."""
    settings = table_below(pyproject, "tool", "maturin")
    file = files.there(str(settings.get("manifest-path", "Cargo.toml")))
    kind = settings.get("bindings", "pyo3")
    if kind == "bin" or file is None:
        return
    crate = read_manifest(files, file)
    if "bindings" not in settings and not _uses_pyo3(crate):
        if "lib" not in crate:
            return   # a program
        kind = "cffi"
    package = table_below(crate, "package").get("name", "")
    name = settings.get("module-name") or table_below(crate, "lib").get("name") or str(package).replace("-", "_")
    folder = file.rpartition("/")[0]
    sources = tuple(each for each in files.ending(".rs") if each.startswith(f"{folder}/src/".lstrip("/")))
    yield ExtensionModule(name=str(name), binding=_MATURIN_BINDINGS.get(str(kind), Binding.PYO3), backend="maturin",
                          file=file, line=1, sources=sources)


def read_manifest(files: ProjectFiles, file: str) -> dict[str, Any]:
    """Return the contents of a Cargo.toml; empty if it cannot be read."""
    try:
        return tomllib.loads(files.text(file) or "")
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def pyo3_version(files: ProjectFiles) -> tuple[int, int] | None:
    """Return the version of PyO3 that the project's crates require, as (0, 28); None if they state none."""
    for file in files.named("Cargo.toml"):
        crate = read_manifest(files, file)
        for table in (crate, table_below(crate, "workspace")):
            asked = table_below(table, "dependencies").get("pyo3")
            text = asked if isinstance(asked, str) else asked.get("version", "") if isinstance(asked, dict) else ""
            if found := _PYO3_VERSION.search(str(text)):
                return int(found[1]), int(found[2] or 0)
    return None


def _uses_pyo3(crate: Mapping[str, Any]) -> bool:
    return any(name in table_below(crate, "dependencies") for name in ("pyo3", "pyo3-ffi"))


_CMAKE_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|#\[(=*)\[.*?\]\2\]|#[^\n]*', re.DOTALL)
_CMAKE_COMMAND = re.compile(r"\b(python[23]?_add_library|python_add_module|add_python_library|python_extension_module"
                            r"|pybind11_add_module|nanobind_add_module)\s*\(", re.IGNORECASE)
_CMAKE_SUBDIRECTORY = re.compile(r"\badd_subdirectory\s*\(\s*\"?([\w./-]+)", re.IGNORECASE)
_CMAKE_SET = re.compile(r"\bset\s*\(\s*(\w+)\s+([^()]*)\)", re.IGNORECASE)
_CMAKE_VARIABLE = re.compile(r"\$\{(\w+)\}")
_CMAKE_FOLDERS = ("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR", "CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR")
MOST_EXPANSIONS = 5   # a variable may refer to itself
_CMAKE_SOURCE = re.compile(r"[\w./+-]+\.(?:c|cc|cpp|cxx|pyx)\b")
_CMAKE_BINDINGS = {"pybind11_add_module": Binding.PYBIND11, "nanobind_add_module": Binding.NANOBIND}


def from_cmake(files: ProjectFiles, backend: str) -> Iterator[ExtensionModule]:
    """Yield the modules of the CMakeLists.txt files that the outermost one includes; others may be vendored."""
    found = {file: list(_cmake_modules(files, file, backend)) for file in files.named("CMakeLists.txt")}
    reached = [each for file in _included_lists(files) for each in found.get(file, ())]
    # If the name of a subfolder is computed, any file may be included.
    yield from reached or [each for modules in found.values() for each in modules]


def _included_lists(files: ProjectFiles) -> list[str]:
    """Return the outermost CMakeLists.txt and, recursively, those of the subfolders that they add."""
    waiting = ["CMakeLists.txt"]
    for file in waiting:   # the loop appends to the list it reads
        folder = file.rpartition("/")[0]
        for named in _CMAKE_SUBDIRECTORY.findall(without_cmake_comments(files.text(file) or "")):
            inside = f"{folder}/{named}/CMakeLists.txt".lstrip("/")
            if inside not in waiting:
                waiting.append(inside)
    return waiting


def _cmake_modules(files: ProjectFiles, file: str, backend: str) -> Iterator[ExtensionModule]:
    text = without_cmake_comments(files.text(file) or "")
    variables = dict.fromkeys(_CMAKE_FOLDERS, ".") | {name: value.replace('"', "").strip() for name,
                                                      value in _CMAKE_SET.findall(text)}
    for match in _CMAKE_COMMAND.finditer(text):
        command, given = match[1].lower(), _expand(arguments(text, match.end() - 1), variables)
        words = given.replace('"', " ").split()
        # Without MODULE the command makes a library to link with.
        if not words or (command.endswith("_add_library") and "MODULE" not in words):
            continue
        sources = tuple(found for each in _CMAKE_SOURCE.findall(given) if (found := files.there(each, file)))
        yield ExtensionModule(name="" if "$" in words[0] else words[0],
                              binding=_CMAKE_BINDINGS.get(command) or binding_of(files, sources), backend=backend,
                              file=file, line=line_of(text, match.start()), sources=sources)


def _expand(text: str, variables: Mapping[str, str], depth: int = 0) -> str:
    """Replace variables that the file sets to plain text by their values; leave others."""
    found = _CMAKE_VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text)
    return found if found == text or depth > MOST_EXPANSIONS else _expand(found, variables, depth + 1)


def without_cmake_comments(text: str) -> str:
    """Return the text of a CMake file without comments; the number of lines stays the same."""
    return _CMAKE_COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)


_MESON_COMMENT = re.compile(r"('(?:[^'\\\n]|\\.)*')|#[^\n]*")
_MESON_MODULE = re.compile(r"\.extension_module\s*\(")
_MESON_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'")
_MESON_SUBDIR = re.compile(r"subdir\s*:\s*'([^']*)'")


def from_meson(files: ProjectFiles) -> Iterator[ExtensionModule]:
    """Yield the modules of the meson.build files: `py.extension_module(...)`."""
    for file in files.named("meson.build"):
        text = _MESON_COMMENT.sub(lambda match: match[1] or "", files.text(file) or "")
        for match in _MESON_MODULE.finditer(text):
            given = arguments(text, match.end() - 1)
            first = _MESON_STRING.match(given.lstrip())
            name = first[1] if first else ""
            subdir = _MESON_SUBDIR.search(given)
            folder = [part for part in (subdir[1].split("/") if subdir else ()) if part.isidentifier()]
            sources = tuple(found for each in _MESON_STRING.findall(given) if (found := files.there(each, file)))
            yield ExtensionModule(name=".".join([*folder, name]) if name else "", binding=binding_of(files, sources),
                                  backend="meson-python", file=file, line=line_of(text, match.start()), sources=sources)


_DEFINITIONS = {
    (".c", ".cc", ".cpp", ".cxx"): re.compile(
        r"\bPyMODINIT_FUNC\s+(?P<c>PyInit_\w+|PyModExport_\w+)|\bPYBIND11_MODULE\s*\(|\bNB_MODULE\s*\("),
    (".rs",): re.compile(r"#\[\s*(?:pyo3::)?pymodule\b"),
}
# C, C++, Rust, Fortran, CUDA, Go, Zig, D, Nim; interfaces of SWIG, SIP and f2py.
_COMPILED_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".rs", ".f", ".f90", ".pyf", ".cu", ".go", ".zig", ".d", ".nim",
                      ".i", ".sip")


def stray_modules(files: ProjectFiles) -> Iterator[ExtensionModule]:
    """Yield a module for each source that defines one although no configuration names it: a script builds it."""
    for suffixes, makes in _DEFINITIONS.items():
        for file in files.ending(*suffixes):
            if found := makes.search(files.text(file) or ""):
                yield _stray_module(file, Binding.PYO3 if file.endswith(".rs") else _stray_binding(found[0]))
    for file in files.ending(".pyx"):
        yield _stray_module(file, Binding.CYTHON)


def compiled_sources(files: ProjectFiles) -> list[str]:
    """Return the files that a compiler may turn into a module; only a build shows whether one does."""
    return files.ending(*_COMPILED_SUFFIXES)


def _stray_binding(text: str) -> Binding:
    if text.startswith("PYBIND11"):
        return Binding.PYBIND11
    return Binding.NANOBIND if text.startswith("NB_") else Binding.C_API


def _stray_module(file: str, binding: Binding) -> ExtensionModule:
    return ExtensionModule(name="", binding=binding, backend="unknown build", file=file, line=1,
                           sources=(file,))


_SETTINGS_FILES = ("setup.py", "setup.cfg", "pyproject.toml", "meson.build", "CMakeLists.txt", "Cargo.toml")
_LIMITED_API = re.compile(r"""py[-_]limited[-_]api|\bPy_LIMITED_API\b|\blimited_api\s*:|\bwheel\.py-api\b|^\s*py-api\s*=
                   |\bSTABLE_ABI\b|\bUSE_SABI\b|\babi3(?:-py\d+)?["']""", re.VERBOSE)


def limited_places(files: ProjectFiles) -> Iterator[Place]:
    """Yield the place of each build setting that requests the limited API, except in comments.

    Free-threaded builds before 3.15 have no limited API, and they do not load abi3 modules.
    """
    for file in files.named(*_SETTINGS_FILES):
        for number, line in enumerate((files.text(file) or "").splitlines(), 1):
            if _LIMITED_API.search(line.partition("#")[0]):
                yield Place(file=file, line=number)
