"""Prepare a run: environments, abilities of the builds, inspection of the user's function, task lengths."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gilscope.runners.catalog import PACKAGES, RUNNERS
from gilscope.toolkit.builds.environment import PACKAGE, build_environment, harness_path
from gilscope.toolkit.builds.inspection import keeps_environment, version_key
from gilscope.toolkit.builds.local_projects import missing_import_advice
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.measure.abilities import Abilities, ask_build, version_mismatches
from gilscope.toolkit.measure.cells import PlannedSubject, Selection
from gilscope.toolkit.measure.child.spec import CellSpec, UserTarget
from gilscope.toolkit.measure.child.user_code import place_lines
from gilscope.toolkit.measure.measured_process import run_child
from gilscope.toolkit.measure.user_modules import full_name_advice, path_advice
from gilscope.toolkit.model import Build, Note
from gilscope.workloads import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.builds.environment import Environment
    from gilscope.toolkit.builds.package_installer import InstallProblem
    from gilscope.toolkit.measure.measured_process import ProcessAnswer
    from gilscope.workloads.base import Workload

OUR_NAME = "gilscope"
PROGRESS_SECONDS = 60.0  # time limit of the child processes before a run
SECONDS_OF_SIZED_WORK = 0.4  # serial seconds of one pass with --task-length, unless the tasks are longer

# The interpreter variables that measured processes keep; others would turn on checks or tracing.
KEPT = frozenset({"PYTHON_JIT", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING"})

PYPERF = "pyperf>=2.10"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The builds, with all that is needed to start measured processes in them."""

    builds: tuple[Build, ...]
    pythons: dict[str, str]
    environments: dict[str, dict[str, str]]
    abilities: dict[str, Abilities]
    notes: tuple[Note, ...]  # differences between the builds
    subjects: tuple[PlannedSubject, ...]


def prepare(
    selection: Selection,
    builds: Sequence[Build],
    *,
    paths: Sequence[Path],
    packages: Sequence[str],
    folder: Path,
    say: Say,
) -> Preparation:
    """Install the packages in every build, and find out what it can run.

    Args:
        selection: The cells to compare.
        builds: The builds, with unique labels.
        paths: Folders of the user's modules, in search order.
        packages: The user's requirements, installed beside those of the workloads.
        folder: The folder for files of the child processes.
        say: Callback for each step.

    Raises:
        BuildError: An environment could not be made.
        ToolkitError: The user's function cannot be measured; the message names the obstacle.
    """
    chosen = [catalog.find(name) for name in selection.workloads]
    if selection.user is not None:
        check_shadowing(selection.user, paths)
    engines = model_packages(selection.models)
    made = {build.label: _environment(build, workload_packages(chosen), engines, packages, say) for build in builds}
    pythons = {label: str(each.python) for label, each in made.items()}
    environments = {label: child_environment(paths if selection.user else ()) for label in made}
    subjects = [PlannedSubject.of(each) for each in chosen]
    if selection.user is not None:
        subjects = [_inspect_anywhere(selection.user, pythons, environments, folder, paths, say)]
        for sentence in _subject_notes(subjects[0], selection.models):
            say(sentence)
    modules = [module for subject in subjects for module in (*subject.requires, *subject.async_requires)]
    # An event loop uses no interpreters, so modules of its tasks alone are not tested there: that takes a second.
    isolated = {module for subject in subjects for module in subject.requires}
    abilities = {}
    for build in builds:
        say(f"asking {build.label} what it can run")
        abilities_of_build = ask_build(
            pythons[build.label],
            environments[build.label],
            free_threaded=build.free_threaded,
            modules=modules,
            isolated=isolated,
        )
        abilities[build.label] = with_installer_reasons(abilities_of_build, made[build.label].missing)
    notes = tuple(Note(text=sentence) for sentence in version_mismatches(abilities))
    return Preparation(
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
    """Return an environment of the build with those of the packages that it can have.

    Raises:
        BuildError: A package is missing without which nothing can be measured.
    """
    made = build_environment(
        build, needed_packages(build), [*optional, *engines], user=user,
        # Packages of an engine must not change the environment of other models.
        purpose="engines" if engines and not keeps_environment(build) else "", on_progress=say,
    )
    # Only a user's environment can lack pyperf; without the backport one model is missing.
    if reason := made.missing.get(PYPERF):
        raise BuildError(f"{build.label} cannot be measured: pyperf is {reason}")
    return made


def needed_packages(build: Build) -> list[str]:
    """Return the packages that measuring needs in `build`; before 3.14 interpreters need a backport."""
    backport = ["backports-interpreters>=0.3"] if version_key(build.version)[:2] < (3, 14) else []
    return [PYPERF, *backport]


def workload_packages(chosen: Sequence[Workload]) -> list[str]:
    """Return the packages of the workloads; one that a build cannot have costs only their cells."""
    return list(dict.fromkeys(package for workload in chosen for package in workload.packages))


def model_packages(models: Sequence[str]) -> list[str]:
    """Return the packages of the models; a build that cannot have one lacks only that model."""
    return list(dict.fromkeys(PACKAGES[name] for name in models if name in PACKAGES))


def with_installer_reasons(abilities: Abilities, missing: Mapping[str, InstallProblem]) -> Abilities:
    """Replace the reasons of missing modules and models by the installer's where it has one."""
    by_name = {re.split(r"[^A-Za-z0-9_-]", text, maxsplit=1)[0]: why for text, why in missing.items()}
    modules = {
        name: why if why is None or name not in by_name else f"{name} cannot be installed: {by_name[name]}"
        for name, why in abilities.modules.items()
    }
    isolated = {name: modules[name] or why for name, why in abilities.isolated.items()}
    lacking = {model: text for model, text in PACKAGES.items() if abilities.runners.get(model) and text in missing}
    reasons: dict[str, str | None] = {
        model: f"{text} cannot be installed: {missing[text]}" for model, text in lacking.items()}
    return replace(abilities, modules=modules, isolated=isolated, runners=abilities.runners | reasons)


def child_environment(paths: Sequence[Path]) -> dict[str, str]:
    """Return the user's environment for measured processes, with our packages and then `paths` first on sys.path."""
    environment = {name: value for name, value in os.environ.items() if name in KEPT or not name.startswith("PYTHON")}
    environment.pop("VIRTUAL_ENV", None)
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part] if paths else []
    environment["PYTHONPATH"] = os.pathsep.join([str(harness_path()), *map(str, paths), *inherited])
    return environment


def check_shadowing(target: UserTarget, paths: Sequence[Path]) -> None:
    """Refuse a user's module named gilscope: one of the two would be imported instead of the other.

    Raises:
        ToolkitError: There is one.
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


def _inspect_anywhere(
    target: UserTarget, pythons: Mapping[str, str], environments: Mapping[str, Mapping[str, str]], folder: Path,
    paths: Sequence[Path], say: Say,
) -> PlannedSubject:
    """Inspect the function in the first build that can load it; other builds that cannot lose only their own cells."""
    first: ToolkitError | None = None
    for label, python in pythons.items():
        say(f"importing {target.function.partition(':')[0]} in {label} to check {target.function}")
        try:
            return inspect_function(target, python, environments[label], folder, paths)
        except ToolkitError as error:
            first = first or error
    assert first is not None, "there is a build"
    raise first


def _subject_notes(subject: PlannedSubject, models: Sequence[str]) -> Iterator[str]:
    """Yield what to know of the user's function before anything is measured."""
    yield from subject.notes
    pickling = [runner.name for runner in RUNNERS if runner.pickles and runner.name in models]
    if pickling and subject.unpicklable:
        yield (f"{subject.name}: {subject.unpicklable}, so models that send it to another interpreter or process are "
               f"skipped: {', '.join(pickling)}")


def inspect_function(
    target: UserTarget, python: str, environment: Mapping[str, str], folder: Path, paths: Sequence[Path] = ()
) -> PlannedSubject:
    """Import and check the user's function in a child process, and return the properties that a plan depends on.

    Raises:
        ToolkitError: It cannot be imported, or cannot be sent to a worker.
    """
    answer = run_child(python, question_spec(folder, user=target), environment, function="describe")
    if answer.kind != "described":
        if missing := answer.fields.get("missing_import"):
            raise ToolkitError(f"cannot measure {target.function}: {answer.reason}; "
                               f"{missing_import_advice(missing, paths)}")
        hint = _import_advice(target, answer.fields, paths)
        raise ToolkitError(f"cannot measure {target.function}: "
                           + (f"{answer.reason}\n{hint}" if hint else "\n  ".join(_inspection_problem(answer))))
    return PlannedSubject(
        target.function,
        has_sync=answer.fields["sync"],
        has_async=answer.fields["async"],
        requires=(answer.fields["module"],),
        unpicklable=answer.fields["unpicklable"],
        notes=tuple(answer.fields["notes"]),
    )


def _inspection_problem(answer: ProcessAnswer) -> list[str]:
    """Return the lines of an error message; of a traceback, only the frames in the user's own code."""
    if "frames" in answer.fields:
        raising = answer.fields.get("raising", "its module raises while it is imported")
        return [raising, *place_lines(answer.fields["frames"]), answer.reason]
    return [answer.reason, *(answer.output.splitlines() if answer.kind != "refused" else ())]


def _import_advice(target: UserTarget, fields: Mapping[str, Any], paths: Sequence[Path]) -> str | None:
    """Return a suggestion for the function's module after its import failed, or None."""
    module = target.function.partition(":")[0]
    if fields.get("outside_package"):
        return full_name_advice(module, paths)
    if fields.get("missing_module") == module.partition(".")[0]:
        return path_advice(module, paths)
    return None


def question_spec(folder: Path, *, user: UserTarget | None = None, workload: str = "") -> CellSpec:
    """Return the spec of a child process that inspects the work without measuring it."""
    return CellSpec(
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


def sized_tasks(selection: Selection, prepared: Preparation, folder: Path) -> dict[tuple[str, float], tuple[int, int]]:
    """Return (units per task, tasks per pass) for each workload and task length.

    They are calibrated on the first build, so that every arm does the same work.

    Raises:
        ToolkitError: The calibration failed.
    """
    sizes = {}
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
            sizes[subject.name, seconds] = units, tasks
    return sizes
