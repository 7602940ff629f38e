"""Turn the command line of `gilscope run` into selection, settings and builds; report every mistake in it."""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.runners.catalog import PACKAGES, RUNNERS
from gilscope.toolkit.builds.find import FoundBuilds, default_pair, select_builds
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.commands.run.options import PHASES
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import ToolkitError, UnknownNameError, suggestion
from gilscope.toolkit.evaluate.requirements.requirements_file import RequirementsFile, read_requirements_file
from gilscope.toolkit.measure.cells import Selection, choose_runners
from gilscope.toolkit.measure.child.spec import UserTarget
from gilscope.toolkit.measure.settings import PRESETS, QUICK_KINDS, QUICK_MODELS, TIMEOUT_SECONDS, Settings
from gilscope.toolkit.measure.user_modules import dotted
from gilscope.workloads import catalog

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gilscope.toolkit.model import Build

FIXED_AT_START = {  # options that a resumed run cannot change: attribute -> as a user writes it
    "workload": "WORKLOAD",
    "builds": "--builds",
    "build": "--build",
    "models": "--models",
    "workers": "--workers",
    "size": "--size",
    "phases": "--phases",
    "task_length": "--task-length",
    "payloads": "--payloads",
    "payload": "--payload",
    "tasks": "--tasks",
    "check": "--check",
    "async_form": "--async-form",
    "kind": "--kind",
    "path": "--path",
    "packages": "--with",
    "requirements": "--requirements",
    "preset": "--quick or --rigorous",
    "seed": "--seed",
    "label": "--label",
    "strict": "--strict",
    "dry_run": "--dry-run",
    "sessions": "--sessions",
    "every": "--every",
}
PROGRAMS = "`gilscope race` and `gilscope gil` run whole programs"
TASKS = 16  # default number of repetitions of --payload


def make_selection(args: argparse.Namespace) -> Selection:
    """Return the selected cells.

    Raises:
        UnknownNameError: There is no such workload or model.
        ToolkitError: Options contradict each other.
    """
    user = user_target(args)
    chosen = () if user else tuple(args.workload) or _default_workloads(args.preset)
    known = [workload.name for workload in catalog.WORKLOADS]
    for name in chosen:
        if name not in known:
            raise UnknownNameError(
                f"unknown workload {name!r}{suggestion(name, known)}; `gilscope list` shows all. "
                "A function of yours is named package.module:function"
            )
    models = args.models or (
        QUICK_MODELS if args.preset == "quick" else [each.name for each in RUNNERS if each.name not in PACKAGES]
    )
    return Selection(
        workloads=chosen,
        user=user,
        models=choose_runners(models, RUNNERS),
        workers=tuple(sorted(set(_workers(args)))),
        phases=PHASES[args.phases or "steady"],
        size=args.size or PRESETS[args.preset or "default"].size,
        task_seconds=args.task_length,
        controls=args.preset != "quick" or args.models is not None,
    )


def _default_workloads(preset: str | None) -> tuple[str, ...]:
    chosen = catalog.REPRESENTATIVE
    if preset == "quick":
        return tuple(name for name in chosen if catalog.find(name).kind in QUICK_KINDS)
    return tuple(chosen)


def user_target(args: argparse.Namespace) -> UserTarget | None:
    """Return the function of the user to measure, or None if none is named.

    Raises:
        ToolkitError: Its name is malformed, or its payloads are given twice.
    """
    named = [name for name in args.workload if ":" in name]
    extra = [option for option in ("payloads", "payload", "check", "async_form", "kind") if getattr(args, option)]
    if not named:
        _refuse_half_named(args.workload, extra)
        return None
    if len(args.workload) > 1:
        raise ToolkitError("measure one function of yours at a time, without workloads of gilscope")
    if args.task_length:
        raise ToolkitError(
            "--task-length is for gilscope's own workloads: give your function payloads of several sizes instead"
        )
    if args.payloads and args.payload is not None:
        raise ToolkitError("use --payloads, one for each task, or --payload, the same for all tasks, not both")
    if args.payload is not None:
        check_payload(args.payload)
    check_callable_names(named[0], args.payloads, args.check, args.async_form)
    return UserTarget(
        function=named[0],
        payloads=args.payloads,
        payload=args.payload,
        tasks=args.tasks or max(TASKS, *_workers(args)),
        check=args.check,
        async_function=args.async_form,
        kind=args.kind,
    )


def check_callable_names(*names: str | None) -> None:
    """Refuse names that do not have the form package.module:name; None is no name.

    Raises:
        ToolkitError: One does not.
    """
    for name in filter(None, names):
        if name.endswith(".py"):
            raise _file_error(name)
        if name.count(":") != 1 or name.startswith(".") or not all(name.partition(":")[::2]):
            raise ToolkitError(f"{name!r} does not have the form package.module:name")
        if name.partition(":")[0].endswith(".py") or "/" in name:
            raise ToolkitError(f"{name!r}: name the module, not the file: {_as_module(name)}")


def _refuse_half_named(words: Sequence[str], extra: Sequence[str]) -> None:
    workloads = {workload.name for workload in catalog.WORKLOADS}
    for name in words:
        path = Path(*name.split("."))
        if name not in workloads and (Path(f"{path}.py").is_file() or (path / "__init__.py").is_file()):
            raise ToolkitError(f"{name!r} is a module: name the function: {name}:FUNCTION; {PROGRAMS}")
    if dotted_names := [name for name in words if "." in name]:
        if dotted_names[0].endswith(".py"):
            raise _file_error(dotted_names[0])
        module, _, function = dotted_names[0].rpartition(".")
        raise ToolkitError(f"{dotted_names[0]!r}: a function of yours is named with a colon: {module}:{function}")
    if extra:
        raise ToolkitError(
            f"--{extra[0].replace('_', '-')} is for a function of yours: name it as package.module:function"
        )


def _file_error(name: str) -> ToolkitError:
    return ToolkitError(f"{name!r} is a file: name the function: {_as_module(f'{name}:FUNCTION')}; {PROGRAMS}")


def _as_module(name: str) -> str:
    """Return the correct form of "src/mypkg/part.py:function": "mypkg.part:function, with --path src"."""
    file, _, attribute = name.partition(":")
    module, folder = dotted(Path(file))
    # A file outside of a package, or a missing one, is named by its own name.
    module = module or file.removesuffix(".py").rpartition("/")[2]
    return f"{module}:{attribute}" + (f", with --path {folder}" if folder != Path() else "")


def check_payload(text: str) -> None:
    """Refuse a --payload that is no literal.

    Raises:
        ToolkitError: It is none.
    """
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ToolkitError(
            f"--payload {text!r} is not a Python literal such as 1000, [1, 2] or {{'key': 'value'}}; quote text twice: "
            "--payload \"'text'\""
        ) from None


def choose_builds(args: argparse.Namespace, available: FoundBuilds) -> tuple[Build, ...]:
    """Return the requested builds, by default the newest pair that was built alike.

    Raises:
        UnknownNameError: There is no such build.
    """
    if args.builds is not None:
        return select_builds(available, args.builds)
    if args.build:
        labels = [each.partition("=")[0] for each in args.build]
        return select_builds(available, ",".join(labels))
    return default_pair(available)


def make_settings(args: argparse.Namespace) -> Settings:
    """Return the settings of the preset, changed by the other options."""
    preset = PRESETS[args.preset or "default"]
    seed = random.SystemRandom().randrange(2**32) if args.seed is None else args.seed
    budget = args.budget or (preset.budget if args.rounds is None else None)
    return Settings(
        rounds=args.rounds or preset.rounds,
        values=preset.values,
        warmups=preset.warmups,
        min_seconds=preset.min_seconds,
        timeout=args.timeout or TIMEOUT_SECONDS,
        budget=budget,
        resolution=args.resolution,
        # --rounds is for all cells; with a budget alone, rounds go to cells whose answer is open.
        where_open=args.resolution is not None or (budget is not None and args.rounds is None),
        seed=seed,
    )


def user_packages(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the requirements of --with and --requirements.

    Raises:
        ToolkitError: The file lists nothing, or what cannot be installed into the environment of every build.
        UnknownNameError: A line is no requirement.
        BadFileError: The file cannot be read.
    """
    packages = [checked(text) for text in args.packages]
    for file in args.requirements:
        contents = read_requirements_file(file)
        if contents == RequirementsFile(requirements=(), left_out=()):
            raise ToolkitError(f"{file} names no package: fill it, or leave --requirements out")
        if contents.left_out:
            raise ToolkitError(
                f"{file} names {contents.left_out[0]!r}: folders and addresses are not installed, because what is "
                "built for one build might be used by another. Remove the line; --path names the folder of your own "
                "modules, and --build LABEL=PATH measures in an environment where it is installed"
            )
        if unread := [option for option in contents.options if option != "--hash"]:
            raise ToolkitError(
                f"{file} has {unread[0]}, which is pip's and is not followed here: take it out, and say it by an "
                "environment variable or a configuration file of pip or uv"
            )
        if contents.options:
            print_stderr(f"{file}: versions are kept, hashes are not checked")
        packages += map(checked, contents.requirements)
    return tuple(dict.fromkeys(packages))


def module_paths(args: argparse.Namespace) -> list[Path]:
    """Return the folders of the user's modules.

    Raises:
        ToolkitError: A folder does not exist.
    """
    for path in args.path or []:
        if not path.is_dir():
            raise ToolkitError(f"--path {path}: {'not a folder' if path.exists() else 'there is no such folder'}")
    return [path.resolve() for path in args.path or [Path.cwd()]]


def refuse_beside_resume(args: argparse.Namespace) -> None:
    """Refuse options that cannot change in a run that has begun, because its rounds would differ.

    Raises:
        ToolkitError: There is such an option.
    """
    allowed = ("sessions", "every") if args.add_session is not None else ()
    values = {option: getattr(args, name) for name, option in FIXED_AT_START.items() if name not in allowed}
    given = [option for option, value in values.items() if not (value is None or value is False or value in ([], ()))]
    if given:
        raise ToolkitError(
            f"{', '.join(given)} cannot be changed in a run that has begun: leave it out, "
            f"or start a new run without {'--resume' if args.add_session is None else '--add-session'}"
        )


def check_sessions(args: argparse.Namespace) -> None:
    """Check the options for sessions against each other.

    Raises:
        ToolkitError: They contradict each other, or there is a fleet.
    """
    if args.add_session is not None and args.resume is not None:
        raise ToolkitError("--resume completes the session that was interrupted, --add-session measures a further one: "
                           "name one of them")
    if args.fleet is not None and (args.add_session is not None or args.sessions is not None):
        raise ToolkitError("a fleet's run has one session: leave --sessions and --add-session out, or start another "
                           "run of the fleet at another time")
    if args.every is not None and args.sessions is None:
        raise ToolkitError("--every needs --sessions N: how many sessions to measure")
    if args.sessions is not None and args.sessions > 1 and args.every is None:
        raise ToolkitError(f"--sessions {args.sessions} needs --every TIME, such as --every 2h: sessions of one hour "
                           "share the state of the machine, and say little about another hour")


def _workers(args: argparse.Namespace) -> tuple[int, ...]:
    cores = usable_cores()
    # A first look is about the gain of several workers, and the baseline is measured in any case.
    return tuple(args.workers or ((max(2, cores),) if args.preset == "quick" else _powers_of_two(cores)))


def _powers_of_two(cores: int) -> tuple[int, ...]:
    return tuple(2**power for power in range(cores.bit_length()) if 2**power <= cores)
