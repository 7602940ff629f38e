"""What `gilscope race` says after the program's end: the report in the forms that were asked for."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.options.programs import STDERR, saved, say
from gilscope.toolkit.commands.streams import put_beside
from gilscope.toolkit.errors import SaveError
from gilscope.toolkit.race.confirm.again import confirm, limit_after
from gilscope.toolkit.race.program.start import INTERRUPTED, core_of, somebody_reads, was_begun
from gilscope.toolkit.race.pytest_.trimmed_stacks import without_pytest
from gilscope.toolkit.race.report import github, json_, sarif, text
from gilscope.toolkit.race.report.gather import load
from gilscope.toolkit.race.spool import LOST

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from gilscope.toolkit.commands.output.pages import HtmlFile
    from gilscope.toolkit.race.program.first_run import FirstRun
    from gilscope.toolkit.race.report.model import RaceReport
    from gilscope.toolkit.race.report.settings import Suppression


def tell(
    args: Namespace, suppressions: Sequence[Suppression], first: FirstRun, page: HtmlFile | None
) -> tuple[bool, int]:
    """Write the report.

    Returns:
        Whether there is a race that is not suppressed, and the exit code of a file that could not be written, or of
        records that the program has destroyed.
    """
    report = load(first.spool, suppressions)
    if not report.processes and was_begun(first.spool):
        # A process writes of itself with its first conflict: this one had none.
        report = replace(report, target=first.spec.options["target"], build=first.spec.options["build"],
                         root=first.spec.options["root"], core=core_of(first.spool), processes=1)
    if args.confirm and report.races:
        report = report.with_confirmations(_confirmations(args, report, first))
    if first.ended < 0 and first.ended != INTERRUPTED:
        say(f"gilscope: the program was ended by {signal.Signals(-first.ended).name}")
    if args.json == STDERR:
        put_beside(json_.render(report))
    elif _is_worth_saying(args, report):
        color = not args.no_color and text.wants_colour(sys.stderr)
        put_beside(text.render(without_pytest(report), color=color, notes=args.notes))
    unsaved = saved(args.json, json_.render(report)) if args.json not in {None, STDERR} else 0
    if args.sarif:
        unsaved = saved(args.sarif, sarif.render(report)) or unsaved
    if args.github and (commands := github.render(report, notes=args.notes)):
        put_beside(commands)
    if page is not None:
        from gilscope.toolkit.site.single.races import race_values

        unsaved = page.saved("race.html", race_values(json_.plain(without_pytest(report))), root=report.root) or unsaved
    lost = any(reason == LOST for _, reason in report.unrewritten)   # which must not look like a program without races
    return bool(report.races), unsaved or SaveError.exit_code * lost


def _is_worth_saying(args: Namespace, report: RaceReport) -> bool:
    """Return whether there is more to say than that all is well, or somebody to hear that."""
    remarks = report.unrewritten or report.unused_suppressions or report.unexplained_suppressions
    return bool(report.races or remarks or args.shared or (args.notes and report.notes)) or somebody_reads()


def _confirmations(args: Namespace, report: RaceReport, first: FirstRun) -> dict[str, str]:
    def progress(attempt: int, unconfirmed: int) -> None:
        if sys.stderr.isatty():
            say(f"gilscope: confirming, run {attempt} of at most {args.confirm}: {unconfirmed} to go")

    limit = args.confirm_timeout or limit_after(first.seconds)
    return confirm(report.races, first.spec, first.entry, tries=args.confirm, limit=limit, progress=progress)
