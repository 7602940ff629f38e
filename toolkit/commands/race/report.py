"""The report of `gilscope race`, after the program has ended: text, and the other forms that are requested."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.options.programs import STDERR, saved
from gilscope.toolkit.commands.streams import print_stderr, put_stderr
from gilscope.toolkit.errors import SaveError
from gilscope.toolkit.programs.foreground import INTERRUPTED
from gilscope.toolkit.race.confirm.confirm import confirm, limit_after
from gilscope.toolkit.race.program.start import core_of, was_begun
from gilscope.toolkit.race.pytest_.trimmed_stacks import without_pytest
from gilscope.toolkit.race.report import json_, text
from gilscope.toolkit.race.report.formats import IN_PLACE, RACE_FORMATS
from gilscope.toolkit.race.verdicts.other_python import load_with

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from gilscope.toolkit.commands.output.pages import HtmlFile
    from gilscope.toolkit.race.program.checked_files import CheckedFiles
    from gilscope.toolkit.race.program.start import FirstRun
    from gilscope.toolkit.race.report.model import ConfirmationOutcome, RaceReport
    from gilscope.toolkit.race.report.settings import Suppression


def report(
    args: Namespace, suppressions: Sequence[Suppression], first: FirstRun, page: HtmlFile | None, checked: CheckedFiles
) -> tuple[bool, int]:
    """Write the report in all forms that are requested.

    Returns:
        Whether there is a race that is not suppressed, and the exit code of a file that could not be written, of a
        check that is incomplete or of nothing, or 0.
    """
    found = replace(load_with(first.spec.python[0], first.spool, suppressions), checked=tuple(checked.paths))
    if not found.processes and was_begun(first.spool):
        # A process writes its header with its first conflict, and this one had none.
        found = replace(found, target=first.spec.options["target"], build=first.spec.options["build"],
                        root=first.spec.options["root"], core=core_of(first.spool), processes=1)
    if args.confirm and found.races:
        found = found.with_confirmations(_confirmations(args, found, first))
    if first.ended < 0 and first.ended != INTERRUPTED:
        print_stderr(f"gilscope: the program was ended by {_signal_name(first)}")
    unsaved = _write(args, found, checked)
    if page is not None:
        from gilscope.toolkit.site.single.races import race_values

        unsaved = page.saved("race.html", race_values(json_.plain(without_pytest(found))), root=found.root) or unsaved
    if args.learn:
        from pathlib import Path

        from gilscope.toolkit.race.report.learn import learn

        if said := learn(found, Path(found.root, "pyproject.toml")):
            print_stderr(f"gilscope race: {said}")
    # Lost records and gaps must not look like a program without races.
    incomplete = 0 if found.is_complete and not checked.is_nothing else SaveError.exit_code
    return bool(found.races) and not args.learn, unsaved or incomplete


def print_early_end(first: FirstRun) -> None:
    """Say that a signal ended the checked process before the program began, so that nothing was checked."""
    print_stderr(f"gilscope: stopped by {_signal_name(first)} before the program began: nothing was checked")


def _signal_name(first: FirstRun) -> str:
    return signal.Signals(-first.ended).name


def _write(args: Namespace, report: RaceReport, checked: CheckedFiles) -> int:
    """Write the text and the other forms; return the exit code of a file that could not be written, or 0."""
    requested = [(form, value) for form in RACE_FORMATS if (value := getattr(args, form.name))]
    in_place = [form for form, value in requested if form.kind == IN_PLACE and value == STDERR]
    for form in in_place:
        put_stderr(form.render(report))
    if not in_place and _is_worth_saying(args, report, checked):
        color = not args.no_color and text.wants_colour(sys.stderr)
        put_stderr(text.render(without_pytest(report), color=color, notes=args.notes, stacks=args.stacks,
                               checked=checked))
    unsaved = 0
    for form, value in requested:
        if form not in in_place:
            unsaved = saved(value, form.render(report)) or unsaved
    return unsaved


def _is_worth_saying(args: Namespace, report: RaceReport, checked: CheckedFiles) -> bool:
    """Return True if there is more to say than what was checked, or if that is to be said."""
    remarks = report.unused_suppressions or report.unexplained_suppressions
    limits = report.unrewritten or not report.is_complete
    return not args.quiet or checked.is_nothing or bool(
        report.races or limits or remarks or (args.notes and report.notes))


def _confirmations(args: Namespace, report: RaceReport, first: FirstRun) -> dict[str, ConfirmationOutcome]:
    def progress(attempt: int, unconfirmed: int) -> None:
        if sys.stderr.isatty():
            print_stderr(f"gilscope: confirming, run {attempt} of at most {args.confirm}: {unconfirmed} to go")

    limit = args.confirm_timeout or limit_after(first.seconds)
    return confirm(report.races, first.spec, first.entry, tries=args.confirm, limit=limit, progress=progress)
