"""`gilscope run`: measure workloads under every model on every build, and show the table."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit import temporary
from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.commands.fleet.reports import HostRuns, finished
from gilscope.toolkit.commands.output.dry_run import earlier_processes, preview
from gilscope.toolkit.commands.output.reports import ReportOutput, refuse_beside_dry_run
from gilscope.toolkit.commands.run import options as run_options
from gilscope.toolkit.commands.run.earlier_run import builds_now, remaining
from gilscope.toolkit.commands.run.measuring import AGAIN, RunJob, measure, measure_plan, refuse_empty, turns
from gilscope.toolkit.commands.run.on_fleet import run_on_fleet
from gilscope.toolkit.commands.run.request import (
    choose_builds,
    make_selection,
    make_settings,
    module_paths,
    refuse_beside_resume,
    user_packages,
)
from gilscope.toolkit.commands.streams import print_stderr, print_stdout
from gilscope.toolkit.cores import allowed_cpus, usable_cores
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.measure.cells import expand
from gilscope.toolkit.measure.child.other_load import is_starved, others_now
from gilscope.toolkit.measure.preparation import prepare
from gilscope.toolkit.measure.run_status import StatusFile
from gilscope.toolkit.measure.settings import PRESETS, RunRequest
from gilscope.toolkit.measure.user_modules import code_sum
from gilscope.toolkit.report.as_json import run_values
from gilscope.toolkit.report.run_document import overview_document, run_document
from gilscope.toolkit.stats.verdict import MIN_ROUNDS
from gilscope.toolkit.store import Store, find_fleet, find_label, is_fleet, label_path
from gilscope.toolkit.store.header import HEADER
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.measure.settings import Settings
    from gilscope.toolkit.model import Run

FAILED_CELLS = 3


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope run`."""
    parser = commands.add_parser(
        "run",
        help="measure workloads under every model on every build",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure the same work under every execution model on every build, in interleaved rounds.\n"
        "Without arguments: the newest pair of builds that were built alike, every model that can run\n"
        "there, one workload of each kind, 1, 2, 4 ... workers up to the number of cores.",
        epilog="examples:\n"
        "  gilscope run --quick\n"
        "  gilscope run primes json_roundtrip --builds 3.14,3.14t --workers 1,2,4\n"
        "  gilscope run mypkg.mod:func --payloads mypkg.mod:make_payloads\n"
        "  gilscope run countdown --task-length 1ms,10ms,100ms    # from which length does each model pay?\n"
        "  gilscope run --resume mylabel",
    )
    parser.add_argument(
        "workload",
        nargs="*",
        metavar="WORKLOAD",
        help="Workloads to measure (default: one of each kind), or a function of yours as package.module:function. "
        "`gilscope list` shows the workloads.",
    )
    run_options.add_matrix(parser.add_argument_group("what to compare"))
    run_options.add_user(parser.add_argument_group("your own function"))
    run_options.add_effort(parser.add_argument_group("how hard to measure"))
    run_options.add_fleet(parser.add_argument_group("on other machines"))
    run_options.add_results(parser.add_argument_group("results"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, or show the plan; return the exit code."""
    refuse_beside_dry_run(args)
    if args.fleet is not None:
        return _on_fleet(args)
    status = StatusFile(args.status_file)
    with status.keeping_error(), tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
        return (_start if args.resume is None else _resume)(args, Path(folder), status)


def _on_fleet(args: argparse.Namespace) -> int:
    path, whole = run_on_fleet(args)
    if any(path.glob(f"*/{HEADER}")):
        overview, whole_report, values = finished(HostRuns.of_fleet(path))
        output = ReportOutput(args)
        output.show(overview, whole_report)
        output.finish(values)
    return 0 if whole else FAILED_CELLS


def _start(args: argparse.Namespace, folder: Path, status: StatusFile) -> int:
    selection, settings = make_selection(args), make_settings(args)
    if args.label is not None and not args.dry_run:
        Store.refuse_taken(args.label)
    builds = choose_builds(args, find_builds(args.build, project_dir=Path.cwd()))
    mismatches = tuple(note for build in builds[1:] for note in compare_builds(builds[0], build))
    if mismatches and args.strict:
        raise BuildError("the builds were not built alike: " + "; ".join(note.text for note in mismatches))
    paths, packages = module_paths(args), user_packages(args)
    with turns(alone=args.take_turns).turn():
        prepared = prepare(selection, builds, paths=paths, packages=packages, folder=folder, say=print_stderr)
    plan = expand(selection, prepared.subjects, builds, RUNNERS, prepared.abilities)
    if args.dry_run:
        print_stdout("\n".join(preview(plan, builds, selection, settings, earlier_processes())))
        return 0
    refuse_empty(plan)
    for warning in _warnings(settings, max(selection.workers)):
        print_stderr(warning)
    job = RunJob(
        selection=selection, settings=settings, paths=paths, packages=packages, label=args.label,
        timeout_asked=args.timeout is not None, notes=mismatches, alone=args.take_turns,
        status=status,
    )
    done = measure_plan(job, prepared, plan, folder)
    return _show(done, label_path(done.label), args)


def _resume(args: argparse.Namespace, folder: Path, status: StatusFile) -> int:
    refuse_beside_resume(args)
    _refuse_other_hosts(args.resume)
    store, so_far = Store.reopen(find_label(args.resume))
    try:
        request = RunRequest.from_options(so_far.options)
        _refuse_two_sides(so_far)
        _refuse_changed_code(so_far.label, request)
        so_far, rounds, only = remaining(so_far, args.rounds, args.resolution)
        builds = builds_now(so_far.builds, so_far.label, f"so {so_far.label} cannot go on")
        # The budget counts from here, without the time before the interruption.
        settings = dataclasses.replace(
            request.settings,
            rounds=args.rounds or request.settings.rounds,
            budget=args.budget or request.settings.budget,
            timeout=args.timeout or request.settings.timeout,
            resolution=args.resolution or request.settings.resolution,
            where_open=request.settings.where_open or args.resolution is not None,
        )
        request = dataclasses.replace(request, settings=settings)
        with turns(alone=args.take_turns).turn():
            prepared = prepare(
                request.selection,
                builds,
                paths=[Path(each) for each in request.paths],
                packages=request.packages,
                folder=folder,
                say=print_stderr,
            )
    except BaseException:
        store.close()
        raise
    print_stderr(f"continuing {args.resume} after {so_far.rounds_done} of {counted(rounds, 'round')}, "
                 f"seed {settings.seed}")
    so_far = dataclasses.replace(so_far, rounds_planned=rounds, options=request.to_options())
    done = measure(so_far, request, store, prepared, folder, tried={}, only=only, alone=args.take_turns, status=status)
    return _show(done, store.path, args)


def _refuse_other_hosts(label: str) -> None:
    """Refuse to continue a fleet's run, or one host's part of it, on this machine."""
    fleet = find_fleet(label) or find_label(label).parent
    if is_fleet(fleet):
        raise ToolkitError(f"{label} was measured by a fleet and has to be continued there: "
                           f"gilscope run --resume {fleet.name} --fleet ADDRESS")


def _refuse_two_sides(so_far: Run) -> None:
    if AGAIN in so_far.options:
        raise ToolkitError(f"{so_far.label} was made by `compare --again` and cannot be resumed: repeat that command")


def _refuse_changed_code(label: str, request: RunRequest) -> None:
    user = request.selection.user
    if user is None or not request.code:
        return
    if request.code != code_sum(user.modules(), [Path(each) for each in request.paths]):
        raise ToolkitError(
            f"the code of {user.function} has changed since {label} began, so its rounds would mix two functions: "
            f"restore the earlier code, or start a new run and then: gilscope compare {label} NEW"
        )


def _show(done: Run, path: Path, args: argparse.Namespace) -> int:
    output = ReportOutput(args)
    output.show(overview_document(done), run_document(done))
    output.finish(lambda: run_values(done))
    for line in failure_lines(done, path):
        print_stderr(line)
    return FAILED_CELLS if done.failed else 0


def failure_lines(done: Run, path: Path) -> list[str]:
    """Return messages on cells that failed in all rounds, and on those that failed in some."""
    failed, aa_arms = ({cell for cell in done.failed if cell.twin is is_aa} for is_aa in (False, True))
    others = {each.cell for each in done.failures if not each.cell.twin} - failed
    where = f"their last output is in {path / 'run.json'}"
    return [
        f"{counted(len(cells), what)} {happened}; {where}"
        for cells, what, happened in (
            (failed, "cell", "failed"), (others, "cell", "failed in some rounds, which are left out"),
            # A failed A/A arm is reported only if no other cell failed.
            (() if failed else aa_arms, "A/A arm", "failed: the noise floor is estimated from the spread of others"),
        ) if cells
    ]


def _warnings(settings: Settings, workers: int) -> Iterator[str]:
    """Yield warnings, before the first value, that the result will be weak."""
    if settings.rounds < MIN_ROUNDS:
        yield (f"{counted(settings.rounds, 'round')} cannot show that anything is faster or slower: chance alone can "
               f"do as much. {MIN_ROUNDS} is the minimum, {PRESETS['quick'].rounds} gives a first look")
    others = others_now()
    if others is not None and is_starved(workers, others, usable_cores(), allowed_cpus()):
        yield (f"other programs use {others:.1f} of {allowed_cpus()} cores now, so {workers} workers will not get the "
               "cores that they need, and intervals will be wide. End those programs, or measure later")
