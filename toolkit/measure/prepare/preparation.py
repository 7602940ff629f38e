"""What must stand before the first round: environments, abilities, the user's function looked at, task lengths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.runners.catalog import PACKAGES
from gilscope.toolkit.builds.inspection import keeps_environment, version_key
from gilscope.toolkit.builds.packages.environment import PACKAGE, build_environment, harness_path
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.measure.abilities.probe import Abilities, ask_build, version_mismatches
from gilscope.toolkit.measure.plan.cells import Selection, Subject
from gilscope.toolkit.measure.prepare.find_module import advice
from gilscope.toolkit.measure.process.running import run_child
from gilscope.toolkit.measure.process.spec import ChildSpec, UserTarget
from gilscope.toolkit.model import Build, Note
from gilscope.workloads import catalog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.builds.packages.environment import Environment
    from gilscope.workloads.base import Workload

OUR_NAME = "gilscope"
PROGRESS_SECONDS = 60.0  # for the questions asked before a run
SECONDS_OF_SIZED_WORK = 0.4  # serial seconds of one pass with --task-length, unless the tasks are longer

# Of the variables that change how an interpreter runs.  What would turn on checks or tracing is not what is compared.
KEPT = frozenset({"PYTHON_JIT", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING"})

PYPERF = "pyperf>=2.10"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The builds with all that is needed to start measured processes in them."""

    builds: tuple[Build, ...]
    pythons: dict[str, str]
    environments: dict[str, dict[str, str]]
    abilities: dict[str, Abilities]
    notes: tuple[Note, ...]  # what makes the builds unlike
    subjects: tuple[Subject, ...]


def prepare(
    selection: Selection,
    builds: Sequence[Build],
    *,
    paths: Sequence[Path],
    packages: Sequence[str],
    folder: Path,
    say: Say,
) -> Prepared:
    """Give every build its packages and ask it what it can do.

    Args:
        selection: What is to be compared.
        builds: The builds, each with its own label.
        paths: Folders of the user's modules, in the order of the search.
        packages: Requirements of the user's, to install beside those of the workloads.
        folder: For the files of the child processes.
        say: Told each step.

    Raises:
        BuildError: an environment could not be made.
        ToolkitError: the user's function cannot be measured; the message names what is in the way.
    """
    chosen = [catalog.find(name) for name in selection.workloads]
    if selection.user is not None:
        check_shadowing(selection.user, paths)
    engines = model_packages(selection.models)
    made = {build.label: _environment(build, workload_packages(chosen), engines, packages, say) for build in builds}
    pythons = {label: str(each.python) for label, each in made.items()}
    environments = {label: child_environment(paths if selection.user else ()) for label in made}
    subjects = [Subject.of(each) for each in chosen]
    if selection.user is not None:
        subjects = [_look_anywhere(selection.user, pythons, environments, folder, paths)]
    modules = [module for subject in subjects for module in (*subject.requires, *subject.async_requires)]
    # An event loop has no interpreters, so what only its tasks import is not asked of them: that takes a second.
    isolated = {module for subject in subjects for module in subject.requires}
    abilities = {}
    for build in builds:
        say(f"asking {build.label} what it can run")
        found = ask_build(
            pythons[build.label],
            environments[build.label],
            free_threaded=build.free_threaded,
            modules=modules,
            isolated=isolated,
        )
        abilities[build.label] = with_installer_reasons(found, made[build.label].missing)
    notes = tuple(Note(text=sentence) for sentence in version_mismatches(abilities))
    return Prepared(
        builds=tuple(builds),
        pythons=pythons,
        environments=environments,
        abilities=abilities,
        notes=notes,
        subjects=tuple(subjects),
    )


def _environment(
    build: Build, optional: Sequence[str], engines: Sequence[str], user: Sequence[str], say: Say
) -> Environment:
    """Return where a build has what it can have of these packages.

    Raises:
        BuildError: it lacks what is needed to measure at all.
    """
    made = build_environment(
        build, needed_packages(build), [*optional, *engines], user=user,
        # What an engine brings along is in nobody else's way.
        purpose="engines" if engines and not keeps_environment(build) else "", on_progress=say,
    )
    # Only an environment of the user's can lack what is needed; without the backport it lacks one model.
    if reason := made.missing.get(PYPERF):
        raise BuildError(f"{build.label} cannot be measured: pyperf is {reason}")
    return made


def needed_packages(build: Build) -> list[str]:
    """Return what measuring needs in `build`; interpreters have a module of their own only from 3.14 on."""
    backport = ["backports-interpreters>=0.3"] if version_key(build.version)[:2] < (3, 14) else []
    return [PYPERF, *backport]


def workload_packages(chosen: Sequence[Workload]) -> list[str]:
    """Return what the workloads need; one that a build cannot have costs it their cells, not the run."""
    return list(dict.fromkeys(package for workload in chosen for package in workload.packages))


def model_packages(models: Sequence[str]) -> list[str]:
    """Return what the models need; a build that cannot have it cannot run them, and all others it can."""
    return list(dict.fromkeys(PACKAGES[name] for name in models if name in PACKAGES))


def with_installer_reasons(found: Abilities, missing: Mapping[str, str]) -> Abilities:
    """Say why a module or what a model needs is missing where the installer knows it better than the import."""
    by_name = {re.split(r"[^A-Za-z0-9_-]", text, maxsplit=1)[0]: why for text, why in missing.items()}
    modules = {
        name: why if why is None or name not in by_name else f"{name} cannot be installed: {by_name[name]}"
        for name, why in found.modules.items()
    }
    isolated = {name: modules[name] or why for name, why in found.isolated.items()}
    lacking = {model: text for model, text in PACKAGES.items() if found.runners.get(model) and text in missing}
    runners = found.runners | {model: f"{text} cannot be installed: {missing[text]}" for model, text in lacking.items()}
    return replace(found, modules=modules, isolated=isolated, runners=runners)


def child_environment(paths: Sequence[Path]) -> dict[str, str]:
    """Return the variables of a measured process: the user's, with our packages and then `paths` first on sys.path."""
    environment = {name: value for name, value in os.environ.items() if name in KEPT or not name.startswith("PYTHON")}
    environment.pop("VIRTUAL_ENV", None)
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part] if paths else []
    environment["PYTHONPATH"] = os.pathsep.join([str(harness_path()), *map(str, paths), *inherited])
    return environment


def check_shadowing(target: UserTarget, paths: Sequence[Path]) -> None:
    """Refuse a user's module that has our name: one of the two would be imported for the other.

    Raises:
        ToolkitError: there is one.
    """
    for path in paths:
        for candidate in (path / OUR_NAME, path / f"{OUR_NAME}.py"):
            if candidate.exists() and candidate.resolve() != PACKAGE:
                raise ToolkitError(
                    f"{candidate} has the name of gilscope itself, so one would be imported for the other: rename it, "
                    "or run from a folder without it by --path"
                )
    for each in (target.function, target.payloads, target.check, target.async_function):
        top = (each or "").partition(":")[0].partition(".")[0]
        if top == OUR_NAME:
            raise ToolkitError(
                f"{each} is gilscope's own; its workloads are named without a module (see gilscope list)"
            )


def _look_anywhere(
    target: UserTarget, pythons: Mapping[str, str], environments: Mapping[str, Mapping[str, str]], folder: Path,
    paths: Sequence[Path],
) -> Subject:
    """Look at the function in the first build that takes it; what others lack costs only their own cells."""
    first: ToolkitError | None = None
    for label, python in pythons.items():
        try:
            return look_at(target, python, environments[label], folder, paths)
        except ToolkitError as error:
            first = first or error
    assert first is not None, "there is a build"
    raise first


def look_at(
    target: UserTarget, python: str, environment: Mapping[str, str], folder: Path, paths: Sequence[Path] = ()
) -> Subject:
    """Return what planning needs to know of the user's function, after it was imported and checked in a child process.

    Raises:
        ToolkitError: it cannot be imported, or cannot travel to a worker.
    """
    answer = run_child(python, question_spec(folder, user=target), environment, function="describe")
    if answer.kind != "described":
        detail = f"\n{answer.output}" if answer.kind != "refused" and answer.output else ""
        if told := advice(target.function.partition(":")[0], answer.reason, paths):
            detail = f"\n{told}"
        raise ToolkitError(f"cannot measure {target.function}: {answer.reason}{detail}")
    return Subject(
        target.function,
        has_sync=answer.fields["sync"],
        has_async=answer.fields["async"],
        requires=(answer.fields["module"],),
    )


def question_spec(folder: Path, *, user: UserTarget | None = None, workload: str = "") -> ChildSpec:
    """Return the spec of a child process that is asked something, not measured."""
    return ChildSpec(
        name="question",
        workload=workload,
        user=user,
        size="small",
        runner="serial",
        workers=1,
        phase="steady",
        task_units=None,
        tasks=None,
        values=1,
        warmups=0,
        loops=1,
        min_seconds=0.0,
        progress_timeout=PROGRESS_SECONDS,
        services=(),
        folder=str(folder),
    )


def sized_tasks(selection: Selection, prepared: Prepared, folder: Path) -> dict[tuple[str, float], tuple[int, int]]:
    """Return for each workload and task length how many units a task has and how many tasks a pass has.

    The first build sets the measure, so that every arm does the same work.

    Raises:
        ToolkitError: the measuring of the unit failed.
    """
    found = {}
    first = prepared.builds[0].label
    for subject in prepared.subjects:
        if not selection.task_seconds or not subject.has_units:
            continue
        answer = run_child(
            prepared.pythons[first],
            question_spec(folder, workload=subject.name),
            prepared.environments[first],
            function="rate",
        )
        if answer.kind != "rate":
            raise ToolkitError(f"cannot size the tasks of {subject.name}: {answer.reason}\n{answer.output}")
        for seconds in selection.task_seconds:
            units = max(1, round(answer.fields["units_per_second"] * seconds))
            tasks = max(*selection.workers, round(SECONDS_OF_SIZED_WORK / seconds))
            found[subject.name, seconds] = units, tasks
    return found
