"""`gilscope doctor dist/*.whl`: the wheels and sdists of projects, judged before they are uploaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.output.reports import ReportOutput
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.errors import BadFileError, ToolkitError, UnknownNameError
from gilscope.toolkit.evaluate.packages.doctor import DoctorOptions
from gilscope.toolkit.evaluate.views import wheels as documents
from gilscope.toolkit.evaluate.views.explain_package import explain
from gilscope.toolkit.evaluate.wheels.examine import WheelRequest, examine, grouped
from gilscope.toolkit.evaluate.wheels.files import SDISTS, WHEEL, read_all
from gilscope.toolkit.site.single.verdicts import verdict_values

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from gilscope.toolkit.builds.find import FoundBuilds
    from gilscope.toolkit.commands.output.pages import HtmlFile
    from gilscope.toolkit.evaluate.wheels.examine import SetReport
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.document import Document


def is_file(text: str) -> bool:
    """Return True if an argument names a wheel, an sdist or a folder of them, not a requirement."""
    if "://" in text or " @ " in text or is_requirements_file(text):
        return False
    return text.endswith((WHEEL, *SDISTS)) or os.sep in text or text in {os.curdir, os.pardir}


def is_requirements_file(text: str) -> bool:
    """Return True if an argument names a requirements file."""
    return text.endswith(".txt")


def judge_files(
    args: argparse.Namespace, targets: Callable[[], tuple[FoundBuilds, Sequence[Build]]], page: HtmlFile | None
) -> int:
    """Judge the named files; return 1 if anything blocks, or a file cannot be judged.

    Args:
        args: The command line.
        targets: Returns the builds at hand and those to ask on.
        page: Where to write the report as a page, too.
    """
    if args.lock:
        raise ToolkitError("--lock cannot be used with files of packages: leave one of them out")
    if packages := [text for text in args.packages if not is_file(text)]:
        raise ToolkitError(f"{', '.join(packages)} is named beside files: wheels are judged as a set, packages one by "
                           "one; call doctor once for each")
    files, unusable = read_all(map(Path, args.packages))
    if not files:
        raise BadFileError("; ".join(f"{each.path}: {each.reason}" for each in unusable))
    found, builds = targets()
    request = WheelRequest(sdists=args.build_sdists, offline=args.offline,
                           options=DoctorOptions(limit=args.timeout, interpreters=True))
    reports = examine(grouped(files), builds, found.builds, request, print_stderr)
    document = _explained(args.explain, reports) if args.explain else documents.document(reports, unusable)
    plain = documents.plain(reports, unusable)
    output = ReportOutput(args)
    output.show(document)
    output.finish(lambda: plain)
    if page:
        page.write("verdict.html", verdict_values(document, [] if args.explain else documents.cards(plain)))
    return int(bool(unusable) or any(each.blocked for each in reports))


def _explained(name: str, reports: Sequence[SetReport]) -> Document:
    shown = explain([answer.report for each in reports for answer in each.answers if answer.report], name)
    if not shown.sections:
        raise UnknownNameError(f"no package, extension module or file {name!r} here")
    return shown
