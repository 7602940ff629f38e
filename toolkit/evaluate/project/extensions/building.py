"""Judge the extension modules that building the project made, as those of an installed package.

The project's code runs only in processes of the build under test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.distributions import installed
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
from gilscope.toolkit.evaluate.packages.evidence import PackageEvidence
from gilscope.toolkit.evaluate.packages.imports import read_extensions
from gilscope.toolkit.evaluate.packages.inspect import Inspector
from gilscope.toolkit.evaluate.packages.judge import judge_interpreters, judge_package
from gilscope.toolkit.evaluate.project.build_output import names_limited_api, place_of_error, why_module_not_built
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, UnbuiltModule
from gilscope.toolkit.evaluate.sections import Missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.packages.evidence import Distribution
    from gilscope.toolkit.evaluate.packages.inspect import ImportOutcome
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import ExtensionModule, OwnExtensions
    from gilscope.toolkit.evaluate.project.installing import Installation
    from gilscope.toolkit.model import Build

LIMIT = 60.0      # seconds for one process that imports
_MYPYC = re.compile(r"[0-9a-f]{20}__mypyc$")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledProject:
    """The project as installed for one build."""

    build: Build
    python: Path                 # of the environment with the project's requirements
    target: Path                 # the folder with the installed project
    installation: Installation


def own_builds(
    own: OwnExtensions, places: Mapping[str, InstalledProject], counterparts: Mapping[str, str],
) -> dict[str, OwnBuild]:
    """Return the result for the project's own extension modules on each build, by label; empty if it has none.

    Args:
        own: The extension modules that the project's files describe.
        places: The installed project, by label of the build; also where installing it failed.
        counterparts: The label of the build with a GIL, by the label of each free-threaded build.
    """
    made = {label: _distribution(place) for label, place in places.items()}
    if not own.any and not any(each and each.extensions for each in made.values()):
        return {}
    inspections: dict[str, _Inspection] = {}
    # Builds with a GIL first: the others are compared with them.
    for label, place in sorted(places.items(), key=lambda each: each[0] in counterparts):
        inspections[label] = _inspected(place, made[label], inspections.get(counterparts.get(label, "")))
    return {label: _own_build(own, here, inspections.get(counterparts.get(label, "")))
            for label, here in inspections.items()}


@dataclass(frozen=True, slots=True)
class _Inspection:
    """The project's distribution on one build, with the result of importing it; None if installing it failed."""

    place: InstalledProject
    found: Distribution | None
    imported: ImportOutcome | None = None
    seen: PackageEvidence | None = None


def _inspected(place: InstalledProject, found: Distribution | None, there: _Inspection | None) -> _Inspection:
    """Import the project on one build; `there` is the inspection on the build with a GIL."""
    if found is None:
        return _Inspection(place, None)
    free_threaded, path = place.build.free_threaded, (str(place.target),)
    inspector = Inspector(python=place.python, free_threaded=free_threaded, interpreters=not free_threaded, limit=LIMIT,
                          path=path)
    imported = inspector.imported(found, there.imported if there else None)
    seen = PackageEvidence(
        distribution=found, free_threaded=free_threaded, run=imported.run,
        extensions=read_extensions(place.python, found.extensions, path=path),
        reference=there.imported.run if there and there.imported else None,
        reference_distribution=there.found if there else None)
    return _Inspection(place, found, imported, inspector.asked_more(seen, imported.wanted))




def _distribution(place: InstalledProject) -> Distribution | None:
    """Return the installed project; None if installing it failed."""
    found = installed([place.target], place.build) if not place.installation.failure else ()
    return next(iter(found), None)


def _own_build(own: OwnExtensions, here: _Inspection, there: _Inspection | None) -> OwnBuild:
    place, elsewhere = here.place, there.place.build.label if there and there.found else ""
    if here.found is None or here.seen is None:
        failure = place.installation.failure or Missing(reason="no package was installed")
        return OwnBuild(build=place.build.label, failure=failure, output=place.installation.output, elsewhere=elsewhere,
                        names_limited_api=names_limited_api(failure.reason, place.installation.output))
    messages = {name: why_module_not_built(name, place.installation.log) for name in _missing(own, here.found)}
    unbuilt = tuple(UnbuiltModule(name=name, why=message or _condition(own, name), place=place_of_error(message),
                                  elsewhere=elsewhere if there and name not in _missing(own, there.found) else "",
                                  nameless=any(name == each.stand_in for each in own.modules))
                    for name, message in messages.items())
    seen = here.seen
    status, reasons = judge_interpreters(seen)
    finding = Finding(name=here.found.name, version=here.found.version, requested=True, seen=seen,
                      verdict=judge_package(seen), interpreters=status, interpreter_reasons=reasons)
    report = BuildReport(build=place.build, reference=there.place.build if there else None, findings=(finding,),
                         others=0, python=place.python)
    return OwnBuild(build=place.build.label, report=report, unbuilt=unbuilt,
                    output=place.installation.output if unbuilt else "",
                    names_limited_api=_lacks_limited_api(own, place.installation, unbuilt))


def _lacks_limited_api(own: OwnExtensions, installation: Installation, unbuilt: Sequence[UnbuiltModule]) -> bool:
    """Return True if the build, or a condition in its script, names the limited API for a module made elsewhere."""
    names = [each.name for each in unbuilt if each.elsewhere]
    errors = [why_module_not_built(name, installation.log) for name in names]
    questions = [found.question for name in names if (found := _conditional(own, name))]
    return bool(names) and names_limited_api(installation.output, *errors, *questions)


def _conditional(own: OwnExtensions, name: str) -> ExtensionModule | None:
    """Return the module `name` if the build script makes it only under a condition."""
    return next((each for each in own.modules if name in {each.name, each.stand_in} and each.question), None)


def _condition(own: OwnExtensions, name: str) -> str:
    """Return the condition under which the build script makes a module, as a sentence; "" if there is none."""
    found = _conditional(own, name)
    if found is None:
        return ""
    hidden = [each for each in found.variables if each not in found.question]
    decides = f", which depends on {' and '.join(hidden)} in the environment" if hidden else ""
    return f"it is made only if {found.question} ({found.file}:{found.line}){decides}"


def _missing(own: OwnExtensions, found: Distribution | None) -> list[str]:
    """Return the modules that the configuration names and the build did not make, except for other systems' modules."""
    made = [name for name, _ in found.extensions] if found else []
    last = {name.rpartition(".")[2] for name in made}
    nameless = [each for each in own.modules if not each.name and not each.condition]
    missing = list(dict.fromkeys(each.name for each in own.modules
                                 if each.name and not each.condition and each.name.rpartition(".")[2] not in last))
    others = _unnamed(own, made)
    # Targets of CMake and meson may be renamed on installation; setuptools' names are exact.
    if others and not any(each.backend.startswith("setuptools") for each in own.modules):
        missing = missing[len(others):]
    # If any unnamed module was made, it is unknown which of the nameless ones are missing.
    if nameless and not others:
        missing += [each.stand_in for each in nameless]
    return missing


def _unnamed(own: OwnExtensions, made: Sequence[str]) -> list[str]:
    """Return the modules that were made and that the configuration does not name."""
    named = {each.name.rpartition(".")[2] for each in own.modules if each.name}
    return [name for name in made if name.rpartition(".")[2] not in named or _MYPYC.search(name)]
