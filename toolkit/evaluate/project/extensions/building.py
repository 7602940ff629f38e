"""Build the project as its users get it, on one build, and judge what that made like a package's files.

Everything that is run of it runs in processes of the build: the installer's, and those that read slots and import.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.ask.every_import import levels
from gilscope.toolkit.evaluate.packages.ask.imports import Wanted, import_run, interpreter_runs
from gilscope.toolkit.evaluate.packages.ask.slots import read_extensions
from gilscope.toolkit.evaluate.packages.distributions import installed
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding, control_modules
from gilscope.toolkit.evaluate.packages.facts import Seen
from gilscope.toolkit.evaluate.packages.judge.distribution import judge
from gilscope.toolkit.evaluate.packages.judge.interpreters import judge_interpreters
from gilscope.toolkit.evaluate.project.build_output import told_of
from gilscope.toolkit.evaluate.project.extensions.facts import OwnBuild, Unbuilt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.packages.facts import Distribution, ImportRun
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnExtensions
    from gilscope.toolkit.evaluate.project.installing import Installation
    from gilscope.toolkit.model import Build

LIMIT = 60.0      # seconds for the imports
BROKEN = {"crash", "hang"}
_MYPYC = re.compile(r"[0-9a-f]{20}__mypyc$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The project as it was installed for one build."""

    build: Build
    python: Path                 # of the environment with what it needs
    target: Path                 # the folder that it was installed into
    installation: Installation


def own_builds(
    own: OwnExtensions, places: Mapping[str, Place], twins: Mapping[str, str],
) -> dict[str, OwnBuild]:
    """Return what the project's own extension modules do on each build, by its label; empty where it has none.

    Args:
        own: What its files say of them.
        places: By the label of each build on which it was installed, or was to be.
        twins: The label of the build with a GIL, by that of each without.
    """
    made = {label: _distribution(place) for label, place in places.items()}
    if not own.any and not any(each and each.extensions for each in made.values()):
        return {}
    looked = {label: _Looked(place, made[label]) for label, place in places.items()}
    found: dict[str, OwnBuild] = {}
    for label, here in sorted(looked.items(), key=lambda each: each[0] in twins):   # those with a GIL first
        there = looked.get(twins.get(label, ""))
        found[label] = _own_build(own, here, there)
    return found


class _Looked:
    """The project's distribution on one build, and what importing it did."""

    def __init__(self, place: Place, found: Distribution | None) -> None:
        self.place = place
        self.found = found
        self.run: ImportRun | None = None
        self.wanted = Wanted(roots=())

    def seen(self, there: _Looked | None) -> Seen:
        """Return all that can be seen of it on this build, beside what was seen on the other."""
        assert self.found is not None
        build = self.place.build
        for wanted in levels(self.found):
            self.wanted, self.run = wanted, self._import(wanted)
            if self.run.kind == "done":
                break
        assert self.run is not None
        seen = Seen(
            distribution=self.found, free_threaded=build.free_threaded, run=self.run,
            extensions=read_extensions(self.place.python, self.found.extensions, path=[str(self.place.target)]),
            reference=there.run if there else None, reference_distribution=there.found if there else None)
        flipped = bool(self.run.gil_on) and build.free_threaded
        stdlib = Wanted(roots=control_modules(self.run.stdlib))
        if flipped:
            seen = replace(seen, forced=self._import(self.wanted, force_off=True))
        if flipped or self.run.kind in BROKEN:
            seen = replace(seen, control=self._import(stdlib))
        return seen if build.free_threaded or self.run.kind != "done" else self._inside(seen, stdlib)

    def _inside(self, seen: Seen, stdlib: Wanted) -> Seen:
        path = [str(self.place.target)]
        runs = interpreter_runs(self.place.python, self.wanted, path=path, limit=LIMIT)
        control = (interpreter_runs(self.place.python, stdlib, path=path, limit=LIMIT)
                   if runs[-1].kind in BROKEN else ())
        return replace(seen, interpreters=runs, interpreters_control=control)

    def _import(self, wanted: Wanted, *, force_off: bool = False) -> ImportRun:
        return import_run(self.place.python, wanted, path=[str(self.place.target)], limit=LIMIT, force_off=force_off)


def _distribution(place: Place) -> Distribution | None:
    """Return the project as it was installed; None when it was not."""
    found = installed([place.target], place.build) if not place.installation.failure else ()
    return next(iter(found), None)


def _own_build(own: OwnExtensions, here: _Looked, there: _Looked | None) -> OwnBuild:
    place, elsewhere = here.place, there.place.build.label if there and there.found else ""
    if here.found is None:
        return OwnBuild(build=place.build.label, failure=place.installation.failure or "no package was installed",
                        output=place.installation.output, elsewhere=elsewhere)
    missing = _missing(own, here.found)
    unbuilt = tuple(Unbuilt(name=name, why=told_of(name, place.installation.said) or _asked(own, name),
                            elsewhere=elsewhere if there and name not in _missing(own, there.found) else "")
                    for name in missing)
    seen = here.seen(there)
    status, reasons = judge_interpreters(seen)
    finding = Finding(name=here.found.name, version=here.found.version, requested=True, seen=seen, verdict=judge(seen),
                      interpreters=status, interpreter_reasons=reasons)
    report = BuildReport(build=place.build, reference=there.place.build if there else None, findings=(finding,),
                         others=0, python=place.python)
    return OwnBuild(build=place.build.label, report=report, unbuilt=unbuilt,
                    output=place.installation.output if unbuilt else "")


def _asked(own: OwnExtensions, name: str) -> str:
    """Return what the build script asks before it makes a module; "" where it asks nothing."""
    found = next((each for each in own.modules if name in {each.name, each.place} and each.question), None)
    if found is None:
        return ""
    hidden = [each for each in found.variables if each not in found.question]
    decides = (f", about which {' and '.join(hidden)} in the environment decide{'s' * (len(hidden) == 1)}" if hidden
               else "")
    return f"it is made only where {found.question} ({found.file}:{found.line}){decides}"


def _missing(own: OwnExtensions, found: Distribution | None) -> list[str]:
    """Return what the configuration names and no file was made of; what the system decides about is not missed."""
    made = [name for name, _ in found.extensions] if found else []
    last = {name.rpartition(".")[2] for name in made}
    nameless = [each for each in own.modules if not each.name and not each.condition]
    missing = list(dict.fromkeys(each.name for each in own.modules
                                 if each.name and not each.condition and each.name.rpartition(".")[2] not in last))
    others = _unnamed(own, made)
    # The targets of CMake and meson may get another name when they are installed; setuptools' names are exact.
    if others and not any(each.backend.startswith("setuptools") for each in own.modules):
        missing = missing[len(others):]
    # That of several nameless ones some are missing cannot be told.
    if nameless and not others:
        missing += [each.place for each in nameless]
    return missing


def _unnamed(own: OwnExtensions, made: Sequence[str]) -> list[str]:
    """Return what was made and has no name in the configuration."""
    named = {each.name.rpartition(".")[2] for each in own.modules if each.name}
    return [name for name in made if name.rpartition(".")[2] not in named or _MYPYC.search(name)]
