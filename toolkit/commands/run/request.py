"""From the command line of `gilscope run` to what is asked: selection, settings, builds.  Every mistake ends here."""

from __future__ import annotations

import ast
import random
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.runners.catalog import PACKAGES, RUNNERS
from gilscope.toolkit.builds.find import FoundBuilds, default_pair, select_builds
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.commands.output.printing import say
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import ToolkitError, UnknownNameError
from gilscope.toolkit.evaluate.requirements.file import Listed, listed
from gilscope.toolkit.measure.plan.cells import Selection, choose_runners
from gilscope.toolkit.measure.plan.presets import PRESETS, QUICK_KINDS, QUICK_MODELS
from gilscope.toolkit.measure.plan.settings import Settings
from gilscope.toolkit.measure.prepare.find_module import dotted
from gilscope.toolkit.measure.process.spec import UserTarget
from gilscope.toolkit.model import Build, Phase
from gilscope.workloads import catalog

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

FIXED_AT_START = {  # attribute of the command line: how a user writes it
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
}
PHASES = {"steady": (Phase.STEADY,), "startup": (Phase.STARTUP,), "both": (Phase.STEADY, Phase.STARTUP)}
TIMEOUT_SECONDS = 60.0
TASKS = 16  # how often --payload is repeated


def make_selection(args: argparse.Namespace) -> Selection:
    """Return what is to be compared.

    Raises:
        UnknownNameError: there is no such workload or model.
        ToolkitError: options that do not go together.
    """
    user = user_target(args)
    chosen = () if user else tuple(args.workload) or _default_workloads(args.preset)
    known = [workload.name for workload in catalog.WORKLOADS]
    for name in chosen:
        if name not in known:
            raise UnknownNameError(
                f"unknown workload {name!r}{_hint(name, known)}; `gilscope list` shows all. "
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
    """Return the function of the user's that is to be measured, None when none is named.

    Raises:
        ToolkitError: it is not named as it must be, or what it is called with is not said once.
    """
    named = [name for name in args.workload if ":" in name]
    extra = [option for option in ("payloads", "payload", "check", "async_form", "kind") if getattr(args, option)]
    if not named:
        _refuse_half_named(args.workload, extra)
        return None
    if len(args.workload) > 1:
        raise ToolkitError("measure one function of yours at a time, and without workloads of gilscope beside it")
    if args.task_length:
        raise ToolkitError(
            "--task-length is for gilscope's own workloads: for your function, make payloads of several sizes"
        )
    if bool(args.payloads) == (args.payload is not None):
        raise ToolkitError(
            "--payloads and --payload exclude each other: one payload per task, or the same one each time"
            if args.payloads else
            f"say what {named[0]} is called with: --payloads MODULE:NAME for one payload per task, or --payload "
            "LITERAL for the same one each time"
        )
    if args.payload is not None:
        _check_literal(args.payload)
    for name in (named[0], args.payloads, args.check, args.async_form):
        if name and (name.count(":") != 1 or name.startswith(".") or not all(name.partition(":")[::2])):
            raise ToolkitError(f"{name!r} is not of the form package.module:name")
        if name and (name.partition(":")[0].endswith(".py") or "/" in name):
            raise ToolkitError(f"{name!r}: name the module, not the file: {_as_module(name)}")
    return UserTarget(
        function=named[0],
        payloads=args.payloads,
        payload=args.payload,
        tasks=args.tasks or max(TASKS, *_workers(args)),
        check=args.check,
        async_function=args.async_form,
        kind=args.kind,
    )


def _refuse_half_named(words: Sequence[str], extra: Sequence[str]) -> None:
    if dotted_names := [name for name in words if "." in name]:
        module, _, function = dotted_names[0].rpartition(".")
        raise ToolkitError(f"{dotted_names[0]!r}: a function of yours is named with a colon: {module}:{function}")
    if extra:
        raise ToolkitError(
            f"--{extra[0].replace('_', '-')} is for a function of yours: name it as package.module:function"
        )


def _as_module(name: str) -> str:
    """Return how "src/mypkg/part.py:function" is written: "mypkg.part:function, with --path src"."""
    file, _, attribute = name.partition(":")
    module, folder = dotted(Path(file))
    # What is no package, or not there, is named by its file alone.
    module = module or file.removesuffix(".py").rpartition("/")[2]
    return f"{module}:{attribute}" + (f", with --path {folder}" if folder != Path() else "")


def _check_literal(text: str) -> None:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ToolkitError(
            f"--payload {text!r} is not a Python literal such as 1000, [1, 2] or {{'key': 'value'}}; quote text twice: "
            "--payload \"'text'\""
        ) from None


def choose_builds(args: argparse.Namespace, found: FoundBuilds) -> tuple[Build, ...]:
    """Return the builds asked for, the newest fair pair when none is.

    Raises:
        UnknownNameError: there is no such build.
        ToolkitError: a build has the name of the file beside the builds' own.
    """
    if any(each.partition("=")[0] == "run" for each in args.build):
        raise ToolkitError("a build cannot be called 'run': results/LABEL/run.json is the run's own file")
    if args.builds is not None:
        return select_builds(found, args.builds)
    if args.build:
        labels = [each.partition("=")[0] for each in args.build]
        return select_builds(found, ",".join(labels))
    return default_pair(found)


def make_settings(args: argparse.Namespace) -> Settings:
    """Return how hard to measure: the preset, and what is asked beside it."""
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
        # Rounds that are asked for are taken of everything; where time is short they go to what is open.
        where_open=args.resolution is not None or (budget is not None and args.rounds is None),
        seed=seed,
    )


def user_packages(args: argparse.Namespace) -> tuple[str, ...]:
    """Return what --with and --requirements name.

    Raises:
        ToolkitError: the file asks for nothing, or for what cannot be installed into the environment of every build.
        UnknownNameError: one is no requirement.
        BadFileError: it cannot be read.
    """
    found = [checked(text) for text in args.packages]
    for file in args.requirements:
        told = listed(file)
        if told == Listed(requirements=(), left_out=()):
            raise ToolkitError(f"{file} names no package: fill it, or leave --requirements out")
        if told.left_out:
            raise ToolkitError(
                f"{file} names {told.left_out[0]!r}: folders and addresses are not installed, since what is built for "
                "one build would be taken for another's. Take the line out; --path names the folder of your own "
                "modules, and --build LABEL=PATH measures in an environment where it is installed"
            )
        if unread := [option for option in told.options if option != "--hash"]:
            raise ToolkitError(
                f"{file} has {unread[0]}, which is pip's and is not followed here: take it out, and say it by an "
                "environment variable or a configuration file of pip or uv"
            )
        if told.options:
            say(f"{file}: versions are kept, hashes are not checked")
        found += map(checked, told.requirements)
    return tuple(dict.fromkeys(found))


def module_paths(args: argparse.Namespace) -> list[Path]:
    """Return the folders the user's modules are in.

    Raises:
        ToolkitError: one is not there.
    """
    for path in args.path or []:
        if not path.is_dir():
            raise ToolkitError(f"--path {path}: {'not a folder' if path.exists() else 'there is no such folder'}")
    return [path.resolve() for path in args.path or [Path.cwd()]]


def refuse_beside_resume(args: argparse.Namespace) -> None:
    """Refuse what would change a run that has begun: it would be dropped, or make its rounds unlike.

    Raises:
        ToolkitError: such an option is there.
    """
    asked = {option: getattr(args, name) for name, option in FIXED_AT_START.items()}
    given = [option for option, value in asked.items() if not (value is None or value is False or value in ([], ()))]
    if given:
        raise ToolkitError(
            f"{', '.join(given)} cannot be changed in a run that has begun: leave it out, "
            "or start a new run without --resume"
        )


def _workers(args: argparse.Namespace) -> tuple[int, ...]:
    cores = usable_cores()
    # A first look asks what several workers gain, and the baseline is measured anyway.
    return tuple(args.workers or ((max(2, cores),) if args.preset == "quick" else _powers_of_two(cores)))


def _powers_of_two(cores: int) -> tuple[int, ...]:
    return tuple(2**power for power in range(cores.bit_length()) if 2**power <= cores)


def _hint(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
