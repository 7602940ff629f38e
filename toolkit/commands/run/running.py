"""What `gilscope run` does with its options: measure workloads under every model on every build, and show the table."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit import temporary
from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.commands.fleet.reports import HostRuns, finished
from gilscope.toolkit.commands.output.dry_run import preview, rounds_text
from gilscope.toolkit.commands.output.reports import ReportOutput, refuse_beside_dry_run
from gilscope.toolkit.commands.run.earlier_run import NothingLeftError, builds_now, remaining
from gilscope.toolkit.commands.run.measuring import (
    AGAIN,
    RunJob,
    machine_lock,
    measure,
    measure_plan,
    nothing_kept_yet,
    refuse_empty,
)
from gilscope.toolkit.commands.run.on_fleet import run_on_fleet
from gilscope.toolkit.commands.run.request import (
    check_sessions,
    choose_builds,
    make_selection,
    make_settings,
    module_paths,
    refuse_beside_resume,
    user_packages,
)
from gilscope.toolkit.commands.run.sessions import begin_session, lacks_sessions, wait_for_session
from gilscope.toolkit.commands.streams import print_stderr, print_stdout
from gilscope.toolkit.cores import allowed_cpus, usable_cores
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.evaluate.project.machine_calibration import wait_quiet
from gilscope.toolkit.measure.busy_programs import busy_programs
from gilscope.toolkit.measure.cells import expand
from gilscope.toolkit.measure.child.other_load import is_starved, others_now
from gilscope.toolkit.measure.machine import this_machine
from gilscope.toolkit.measure.preparation import prepare
from gilscope.toolkit.measure.run_status import StatusFile
from gilscope.toolkit.measure.settings import PRESETS, RunRequest
from gilscope.toolkit.measure.user_modules import code_sum
from gilscope.toolkit.report.answer import answer_document
from gilscope.toolkit.report.as_json import run_values
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.stats.verdict import MIN_ROUNDS
from gilscope.toolkit.store import Store, find_fleet, find_label, is_fleet, label_path, read_header
from gilscope.toolkit.store.header import HEADER
from gilscope.toolkit.units import counted, format_minutes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Container, Iterator

    from gilscope.toolkit.measure.settings import Settings
    from gilscope.toolkit.model import Cell, Run

FAILED_CELLS = 3


def run(args: argparse.Namespace) -> int:
    """Measure, or show the plan; return the exit code."""
    refuse_beside_dry_run(args)
    check_sessions(args)
    if args.fleet is not None:
        return _on_fleet(args)
    status = StatusFile(args.status_file)
    if args.add_session is not None:
        with status.keeping_error():
            return _add_session(args, status)
    with status.keeping_error(), tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
        return (_start if args.resume is None else _resume)(args, Path(folder), status)


def _on_fleet(args: argparse.Namespace) -> int:
    path, whole = run_on_fleet(args)
    if any(path.glob(f"*/{HEADER}")):
        answer, whole_report, values = finished(HostRuns.of_fleet(path))
        output = ReportOutput(args)
        output.show_answer(answer, whole_report, full=args.full)
        output.finish(values)
    return 0 if whole else FAILED_CELLS


def _start(args: argparse.Namespace, folder: Path, status: StatusFile) -> int:
    selection, settings = make_selection(args), make_settings(args)
    if args.label is not None and not args.dry_run:
        Store.refuse_taken(args.label)
    here = Path.cwd()
    print_stderr("looking for builds of CPython")
    builds = choose_builds(args, find_builds(args.build, project_dir=here))
    mismatches = tuple(note for build in builds[1:] for note in compare_builds(builds[0], build))
    if mismatches and args.strict:
        raise BuildError("the builds were not built alike: " + "; ".join(note.text for note in mismatches))
    paths, packages = module_paths(args), user_packages(args)
    with nothing_kept_yet(), machine_lock(alone=args.take_turns).hold():
        prepared = prepare(selection, builds, paths=paths, packages=packages, folder=folder, say=print_stderr)
    plan = expand(selection, prepared.subjects, builds, RUNNERS, prepared.abilities)
    if args.dry_run:
        lines = preview(plan, builds, selection, settings)
        if args.sessions is not None and args.sessions > 1:
            lines.append(f"This is one session of {args.sessions}; one begins every {format_minutes(args.every)}.")
        print_stdout("\n".join(lines))
        return 0
    refuse_empty(plan)
    _wait_if_asked(args)
    for warning in _warnings(settings, max(selection.workers)):
        print_stderr(warning)
    job = RunJob(
        selection=selection, settings=settings, paths=paths, packages=packages, label=args.label,
        timeout_asked=args.timeout is not None, notes=mismatches, alone=args.take_turns,
        status=status, sessions=args.sessions or 1, every=args.every,
    )
    done = measure_plan(job, prepared, plan, folder)
    path = label_path(done.label)
    return _show(_further_sessions(done, path, args, status), path, args)


def _resume(args: argparse.Namespace, folder: Path, status: StatusFile) -> int:
    refuse_beside_resume(args)
    _refuse_other_hosts(args.resume)
    store, so_far = Store.reopen(find_label(args.resume))
    try:
        request = RunRequest.from_options(so_far.options)
        _refuse_two_sides(so_far)
        try:
            so_far, rounds, only = remaining(so_far, args.rounds, args.resolution)
        except NothingLeftError:
            if not lacks_sessions(so_far, request):
                raise
            store.close()
            return _show(_further_sessions(so_far, store.path, args, status), store.path, args)
        request = _with_limits(request, args)
        print_stderr(f"continuing {args.resume} after {so_far.rounds_done} of {counted(rounds, 'round')}, "
                     f"seed {request.settings.seed}")
        so_far = dataclasses.replace(so_far, rounds_planned=rounds, options=request.to_options())
    except BaseException:
        store.close()
        raise
    done = _measure_more(so_far, request, store, args, folder, status, only=only)
    return _show(_further_sessions(done, store.path, args, status), store.path, args)


def _with_limits(request: RunRequest, args: argparse.Namespace) -> RunRequest:
    """Return the request with the limits that the command line changes."""
    before = request.settings
    # The budget counts from here, without the time before the interruption.
    return dataclasses.replace(request, settings=dataclasses.replace(
        before,
        rounds=args.rounds or before.rounds,
        budget=args.budget or before.budget,
        timeout=args.timeout or before.timeout,
        resolution=args.resolution or before.resolution,
        where_open=before.where_open or args.resolution is not None,
    ))


def _measure_more(
    so_far: Run, request: RunRequest, store: Store, args: argparse.Namespace, folder: Path, status: StatusFile, *,
    only: Container[Cell] | None = None,
) -> Run:
    """Measure the missing rounds of a stored run, if its builds and the user's code are as they were."""
    try:
        _refuse_changed_code(so_far.label, request)
        builds = builds_now(so_far.builds, so_far.label, f"so {so_far.label} cannot go on")
        with machine_lock(alone=args.take_turns).hold():
            prepared = prepare(
                request.selection,
                builds,
                paths=[Path(each) for each in request.paths],
                packages=request.packages,
                folder=folder,
                say=print_stderr,
            )
        _wait_if_asked(args)
    except BaseException:
        store.close()
        raise
    return measure(so_far, request, store, prepared, folder, tried={}, only=only, alone=args.take_turns, status=status)


def _add_session(args: argparse.Namespace, status: StatusFile) -> int:
    refuse_beside_resume(args)
    _refuse_other_hosts(args.add_session)
    path = find_label(args.add_session)
    so_far = read_header(path)
    _refuse_two_sides(so_far)
    count = len(so_far.sessions)
    total = args.sessions or count + 1
    if total <= count:
        raise ToolkitError(f"{so_far.label} has {counted(count, 'session')} already: --sessions is the number that it "
                           "is to have in the end")
    done = _measure_session(path, args, status, total)
    return _show(_further_sessions(done, path, args, status, total), path, args)


def _further_sessions(
    done: Run, path: Path, args: argparse.Namespace, status: StatusFile, total: int | None = None,
) -> Run:
    """Measure the sessions that the run is to have, each when it is due; nothing is locked while it waits.

    Args:
        done: The run.
        path: Its folder.
        args: The command line.
        status: For the process that started this one.
        total: The sessions to measure now; None: as many as the run is to have.
    """
    request = RunRequest.from_options(done.options)
    while len(done.sessions) < (total or request.sessions):
        wait_for_session(done, request)
        done = _measure_session(path, args, status, total or request.sessions)
    return done


def _measure_session(path: Path, args: argparse.Namespace, status: StatusFile, total: int) -> Run:
    """Measure a further session of the run in the folder `path`, which is to have `total` sessions."""
    store, so_far = Store.reopen(path)
    try:
        request = _with_limits(RunRequest.from_options(so_far.options), args)
        request = dataclasses.replace(
            request, sessions=max(request.sessions, total), every=args.every or request.every)
        so_far = begin_session(so_far, request, this_machine())
    except BaseException:
        store.close()
        raise
    print_stderr(f"session {len(so_far.sessions)} of {request.sessions} of {so_far.label}: "
                 f"{rounds_text(request.settings)}, seed {so_far.seed}")
    with tempfile.TemporaryDirectory(prefix=temporary.prefix()) as folder:
        return _measure_more(so_far, request, store, args, Path(folder), status)


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
    output.show_answer(lambda: answer_document(done), lambda: run_document(done), full=args.full)
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
            (() if failed else aa_arms, "A/A arm", "failed: fewer cells, or none, check the noise"),
        ) if cells
    ]


def _wait_if_asked(args: argparse.Namespace) -> None:
    if args.wait_quiet:
        wait_quiet(args.wait_quiet, print_stderr)


def _warnings(settings: Settings, workers: int) -> Iterator[str]:
    """Yield warnings, before the first value, that the result will be weak."""
    if settings.rounds < MIN_ROUNDS:
        yield (f"{counted(settings.rounds, 'round')} cannot show that anything is faster or slower: chance alone can "
               f"do as much. {MIN_ROUNDS} is the minimum, {PRESETS['quick'].rounds} gives a first look")
    others = others_now()
    if others is not None and is_starved(workers, others, usable_cores(), allowed_cpus()):
        named = f": {programs}" if (programs := busy_programs()) else ""
        yield (f"{counted(workers, 'worker')} will not get the cores needed, as other programs use {others:.1f} of "
               f"{allowed_cpus()} cores now{named}. End them, or add --wait-quiet")
