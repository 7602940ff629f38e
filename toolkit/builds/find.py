"""Find every available CPython from 3.12 on, label each, and select some by label.

`inspection` asks what an interpreter is; `pairing` decides whether two can be compared fairly.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.builds import compile_python
from gilscope.toolkit.builds.added import added_builds
from gilscope.toolkit.builds.inspection import (
    BuildFacts,
    has_lto,
    has_pgo,
    inspect_all,
    is_environment,
    opt_level,
    version_key,
)
from gilscope.toolkit.builds.pairing import best_pair
from gilscope.toolkit.builds.versions import SUPPORTED
from gilscope.toolkit.errors import BuildError, UnknownNameError
from gilscope.toolkit.model import Build, Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OLDEST = (3, 12)
SOURCES = ("explicit", "added", "tox", "gilscope", "uv", "pyenv", "PATH")  # of a build found twice, the first counts
KEEPS_ENVIRONMENT = {"explicit", "added", "tox"}   # used with the packages that they have
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
# A run stores the values of a build in BUILD.json, beside its other files.
RESERVED_LABELS = {
    "all": "it stands for all builds",
    "run": "run.json is the run's own file",
    "fleet": "fleet.json is the file of a run on several hosts",
    "experiments": "experiments.json is the file of several experiments",
}
PYTHON_NAME = re.compile(r"python(3\.(\d+)t?d?)")
VERSION = re.compile(r"\d+\.\d+t?")
INSTALLABLE = re.compile(r"3\.(?:12|1[345]t?)")   # labels that `gilscope builds install` gets; 3.12t never was


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBuilds:
    """The available builds, and the problems of those that cannot be used."""

    builds: tuple[Build, ...]     # newest first, of one version the GIL build first
    problems: tuple[Note, ...]
    unusable: dict[str, Note] = field(default_factory=dict)   # why a build that was found cannot be used, by label


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be an interpreter."""

    path: Path
    source: str
    label: str = ""       # chosen by the user; "": one is made up
    revision: str = ""    # from the record of its installation


def find_builds(explicit: Sequence[str] = (), *, project_dir: Path | None = None) -> FoundBuilds:
    """Return every available build.

    Args:
        explicit: `LABEL=PATH` as given with --build; PATH may be an environment's python.
        project_dir: Where to look for `.tox` (default: the current folder).

    Raises:
        UnknownNameError: An explicit build is not a CPython that can be used; everything else becomes a problem.
    """
    chosen = [_explicit_candidate(text) for text in explicit]
    _refuse_same_labels(chosen)
    added, unusable = _added_candidates({candidate.label for candidate in chosen})
    candidates = [*chosen, *added, *_candidates(project_dir or Path.cwd())]
    facts = inspect_all(candidate.path for candidate in candidates)
    builds: dict[tuple[int, int] | str, tuple[Candidate, Build]] = {}
    others: list[Note] = []   # problems of builds that nobody named
    silent: dict[str, Note] = {}
    for candidate in candidates:
        answer = facts[candidate.path]
        reason = answer if isinstance(answer, str) else _unsuitable(answer)
        if not isinstance(answer, str) and not reason:
            builds.setdefault(_identity(candidate, answer), (candidate, _build(candidate, answer)))
        elif candidate.source == "explicit":
            raise UnknownNameError(f"--build {candidate.label}={candidate.path}: {reason}")
        elif candidate.source == "added":
            unusable[candidate.label] = _unusable(candidate.label, candidate.path, reason)
        elif isinstance(answer, str):
            others.append(Note(text=f"{candidate.path} ({candidate.source}) {reason}"))
            if label := _presumed_label(candidate.path):
                silent.setdefault(label, Note(text=f"{label} is installed as {candidate.path}, which {reason}; "
                                                   "try again, and install it again if that does not help"))
    return FoundBuilds(builds=_with_labels(list(builds.values())), problems=(*unusable.values(), *others),
                       unusable={**silent, **unusable})


def select_builds(found: FoundBuilds, wanted: str | None) -> tuple[Build, ...]:
    """Return the builds named in `wanted` ("3.14,3.14t") in that order; by default the newest fair pair.

    Raises:
        UnknownNameError: A name is not the label of an available build.
        BuildError: No name was given and there is no build at all.
    """
    if wanted is None:
        return default_pair(found)
    by_label = {build.label: build for build in found.builds}
    labels = [label for label in (part.strip() for part in wanted.split(",")) if label]
    if not labels:
        raise UnknownNameError("no build named; name some like 3.14,3.14t")
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise UnknownNameError(f"{twice[0]} is named twice; name each build once")
    if unknown := [label for label in labels if label not in by_label]:
        unusable = [note.text for label in unknown if (note := found.unusable.get(label))]
        raise UnknownNameError(unusable[0] if unusable else _unknown_labels(unknown, list(by_label)))
    return tuple(by_label[label] for label in labels)


def select_free_threaded(found: FoundBuilds, wanted: str) -> tuple[Build, ...]:
    """Return the free-threaded builds named in `wanted`, as `select_builds` does.

    Raises:
        UnknownNameError: A name is not the label of an available build, or that of a build with a GIL.
    """
    builds = select_builds(found, wanted)
    if with_gil := [build.label for build in builds if not build.free_threaded]:
        have = "has" if len(with_gil) == 1 else "have"
        raise UnknownNameError(f"{' and '.join(with_gil)} {have} a GIL: name free-threaded builds, such as 3.14t")
    return builds


def default_pair(found: FoundBuilds) -> tuple[Build, ...]:
    """Return the newest fair pair, the GIL build first; the newest build alone when no pair can be made.

    Raises:
        BuildError: There is no build at all.
    """
    if pair := best_pair(found.builds):
        return (pair.gil, pair.free_threaded)
    if not found.builds:
        raise BuildError("no CPython 3.12 or newer found; `gilscope builds install` gets a pair")
    return found.builds[:1]


def inspect_new(text: str) -> tuple[str, Path, Build]:
    """Return label, path and build of `LABEL=PATH`, inspected in the same way as builds that are found.

    Raises:
        UnknownNameError: It is not a CPython that can be used.
    """
    candidate = _explicit_candidate(text, option="")
    answer = inspect_all([candidate.path])[candidate.path]
    if reason := answer if isinstance(answer, str) else _unsuitable(answer):
        raise UnknownNameError(f"{candidate.path} {reason}")
    assert not isinstance(answer, str)
    return candidate.label, candidate.path, replace(_build(candidate, answer), label=candidate.label)


def _added_candidates(overridden: set[str]) -> tuple[list[Candidate], dict[str, Note]]:
    """Return the builds that the user added, except those with an `overridden` label; and those that are gone."""
    candidates, gone = [], {}
    for label, path in added_builds().items():
        if not path.exists():
            gone[label] = _unusable(label, path, "is gone")
        elif label not in overridden:
            candidates.append(Candidate(path, "added", label))
    return candidates, gone


def _unusable(label: str, path: Path, reason: str) -> Note:
    return Note(text=f"{label}, added as {path}, {reason}; `gilscope builds remove {label}` forgets it")


def _presumed_label(path: Path) -> str:
    """Return what an interpreter that did not answer would be called, by its file's name; "" if that does not say."""
    match = PYTHON_NAME.fullmatch(path.name)
    return match[1] if match else ""


def _identity(candidate: Candidate, facts: BuildFacts) -> tuple[int, int] | str:
    """Return a key that is equal if two candidates are one build; a named environment is a build of its own."""
    if candidate.source in {"explicit", "added"} and is_environment(candidate.path):
        return str(candidate.path)
    return _file_key(facts.base_executable)


def _unknown_labels(labels: list[str], known: list[str]) -> str:
    if paths := [label for label in labels if "=" in label]:
        return f"--builds takes names; add an interpreter to them with --build {paths[0]}, once for each"
    at_hand = f"at hand: {', '.join(known)}" if known else "none is at hand"
    lacking = f"no build {' and no build '.join(map(repr, labels))}"
    if all(map(INSTALLABLE.fullmatch, labels)):   # a version that is missing, not misspelled
        them = "it" if len(labels) == 1 else "them"
        return f"{lacking}; {at_hand}. `gilscope builds install {' '.join(labels)}` gets {them}"
    near = [close for label in labels for close in difflib.get_close_matches(label, known, 1)]
    hint = f"did you mean {near[0]!r}? " if near else ""
    if any(map(VERSION.fullmatch, labels)):
        hint = f"{SUPPORTED}; "
    return f"{lacking}; {hint}{at_hand}. `gilscope builds install 3.14 3.14t` gets more"


def _explicit_candidate(text: str, option: str = "--build ") -> Candidate:
    label, equals, path = text.partition("=")
    if not (equals and path and LABEL.fullmatch(label)):
        raise UnknownNameError(f"{option}{text!r}: write LABEL=PATH, like mine=/opt/python/bin/python3.14")
    if label in RESERVED_LABELS:
        raise UnknownNameError(f"{option}{text}: a build cannot be called {label!r}: {RESERVED_LABELS[label]}")
    executable = Path(path).expanduser().absolute()
    if executable.is_dir():
        inside = next((each for name in ("python", "python3") if (each := executable / "bin" / name).exists()), None)
        if not inside:
            raise UnknownNameError(f"{option}{text}: {executable} is a folder without bin/python")
        executable = inside
    if not executable.exists():
        raise UnknownNameError(f"{option}{text}: there is no file {executable}")
    return Candidate(executable, "explicit", label)


def _refuse_same_labels(chosen: Sequence[Candidate]) -> None:
    labels = [candidate.label for candidate in chosen]
    for label in labels:
        if labels.count(label) > 1:
            raise UnknownNameError(f"--build {label}=... is given twice; every build needs a label of its own")


def _candidates(project_dir: Path) -> Iterator[Candidate]:
    # `.pkg` is where tox builds packages.  py313 comes before `lint`, which may have the same interpreter.
    found = project_dir.glob(".tox/[!.]*/bin/python")
    for path in sorted(found, key=lambda path: (not path.parts[-3].startswith("py3"), path)):
        yield Candidate(path.absolute(), "tox")
    for entry in compile_python.installed():
        yield Candidate(Path(entry.executable), "gilscope", revision=f"sha256:{entry.sha256[:16]}")
    for path in _interpreters(_uv_folder().glob("*/bin")):
        yield Candidate(path, "uv")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for path in _interpreters((pyenv / "versions").glob("*/bin")):
        yield Candidate(path, "pyenv")
    folders = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    # pyenv's shims start whatever the current folder asks for, or fail; the interpreters behind them are listed above.
    shims = (pyenv / "shims").resolve()
    for path in _interpreters(folder for folder in folders if folder.resolve() != shims):
        yield Candidate(path, "PATH")
    if os.access(sys.executable, os.X_OK):  # empty where Python is embedded
        yield Candidate(Path(sys.executable), "PATH")


def _uv_folder() -> Path:
    if chosen := os.environ.get("UV_PYTHON_INSTALL_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "uv" / "python"


def _interpreters(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        try:
            files = sorted(folder.iterdir())
        except OSError:
            continue  # PATH often names folders that do not exist
        for path in files:
            match = PYTHON_NAME.fullmatch(path.name)
            if match and int(match[2]) >= OLDEST[1] and os.access(path, os.X_OK):
                yield path


def _file_key(path: str) -> tuple[int, int] | str:
    """Return a key that is equal for all names of a file: `make install` links python3.14 to python3.14t."""
    try:
        status = Path(path).stat()
    except OSError:   # an interpreter may report a path that does not exist
        return path
    return status.st_dev, status.st_ino


def _unsuitable(facts: BuildFacts) -> str:
    if facts.implementation != "cpython":
        return f"is {facts.implementation}, not CPython"
    if version_key(facts.version)[:2] < OLDEST:
        return f"is CPython {facts.version}; 3.12 is the oldest that can be measured"
    return ""


def _build(candidate: Candidate, facts: BuildFacts) -> Build:
    keeps = candidate.source in KEEPS_ENVIRONMENT
    # A script, such as a pyenv shim, stands for the interpreter that it starts.
    with candidate.path.open("rb") as handle:
        own = facts.executable if handle.read(2) == b"#!" else str(candidate.path)
    return Build(
        label=candidate.label, version=facts.version,
        executable=own if keeps else facts.base_executable, base_executable=facts.base_executable,
        free_threaded=facts.free_threaded, source=candidate.source, debug=facts.debug, jit=facts.jit,
        compiler=" ".join(facts.compiler.split()), opt_level=opt_level(facts.flags),
        pgo=has_pgo(facts), lto=has_lto(facts),
        allocator="mimalloc" if facts.free_threaded else "pymalloc" if facts.pymalloc else "malloc",
        revision=facts.revision or candidate.revision, config_args=facts.config_args,
        tail_call=facts.tail_call,
    )


def _with_labels(found: list[tuple[Candidate, Build]]) -> tuple[Build, ...]:
    """Return the builds, newest first, each with a unique label."""
    by_priority = sorted((build for _, build in found), key=_label_priority)
    taken = {build.label for build in by_priority if build.label}
    named = []
    for build in by_priority:
        label = build.label or _unused_label(build, taken)
        taken.add(label)
        named.append(replace(build, label=label))
    return tuple(sorted(named, key=lambda build: (_newest_first(build), build.free_threaded, _label_priority(build))))


def _label_priority(build: Build) -> tuple[object, ...]:
    return (SOURCES.index(build.source), _newest_first(build), not build.pgo)


def _newest_first(build: Build) -> tuple[int, ...]:
    return tuple(-int(part) for part in version_key(build.version))


def _unused_label(build: Build, taken: set[str]) -> str:
    suffix = ("t" if build.free_threaded else "") + ("d" if build.debug else "")
    plain = build.minor + suffix
    exact = f"{build.version}{suffix}-{build.source}"
    names = [plain, exact, *(f"{exact}-{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)
