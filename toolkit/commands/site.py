"""`gilscope site`: make static pages of any number of runs."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shlex
import webbrowser
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from gilscope.toolkit.commands.options.files import add_publisher
from gilscope.toolkit.commands.output.figures import draw_pictures, python_that_draws
from gilscope.toolkit.commands.output.pages import today
from gilscope.toolkit.commands.streams import print_stderr, print_stdout
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.report import document, experiment_of, pictures_of
from gilscope.toolkit.redaction import leak_lines, of_this_machine, without_folders
from gilscope.toolkit.site.answer_files import find_answers
from gilscope.toolkit.site.common_pages import HOME
from gilscope.toolkit.site.making import SiteRequest, check_site, make_site
from gilscope.toolkit.site.pages.experiments import ExperimentSummary
from gilscope.toolkit.site.sources import find_sources, hosts_of
from gilscope.workloads import catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.model import Run
    from gilscope.toolkit.report.document import Picture
    from gilscope.workloads.base import Workload

TITLE = "gilscope results"
DAMAGED = 2   # exit code: a run could not be read
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?(?::\d{1,5})?")
_KEPT = "/%~!$&'*+,;=:@"   # characters that need no quoting; a bracket or a blank would end a link in Markdown


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope site`."""
    parser = commands.add_parser(
        "site",
        help=SUMMARIES["site"],
        description="Make a folder of static pages from any number of runs: conclusions, figures and tables of each, "
        "their builds side by side, their history, the classic experiments, and saved answers of `scale`, `race`, "
        "`gil`, `doctor` and `evaluate`. The pages open from disk and from any static host, and load nothing from "
        "elsewhere. Paths and host names are left out.",
    )
    parser.add_argument(
        "results", nargs="*", metavar="RESULTS",
        help="Folders with runs, labels, or files that `--json` of scale, race, gil, doctor or evaluate wrote, which "
        "are also found in such folders (default: all runs and answers in the results of this folder). NAME=FOLDER "
        "names the machine of that folder's runs, to distinguish results that were copied from several machines.",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", metavar="FOLDER", type=Path,
                       help="Write the pages to FOLDER, a new folder, or one with a site, which is replaced.")
    where.add_argument("--check", action="store_true",
                       help="Write nothing: list everything in the pages that names a person or a machine, and its "
                       "place. Exit with 1 if it finds anything, which --out would refuse.")
    parser.add_argument("--title", metavar="TITLE", default=TITLE, help=f"Name the site TITLE (default: {TITLE}).")
    parser.add_argument("--url", metavar="URL", type=web_address, default=None,
                        help="The address at which you will publish the site, e.g. https://me.github.io/results/ "
                        "(default: none). Used for the badge and the citations.")
    add_publisher(parser, "each page")
    parser.add_argument("--source-url", metavar="URL", type=web_address, default=None,
                        help="The address of gilscope's source, e.g. https://github.com/me/gilscope/blob/main "
                        "(default: none). Use it to have workloads link to their file and line, and pages to the "
                        "documentation; both are text otherwise.")
    parser.add_argument("--open", action="store_true", help="Open the first page in the browser afterwards.")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make the site."""
    answers = find_answers(args.results)
    sources = find_sources(args.results, {each.named for each in answers})
    request = SiteRequest(
        sources=sources, answers=answers, title=args.title, kinds={each.name: each.kind for each in catalog.WORKLOADS},
        describe=_about, address=args.url or "", processes=usable_cores(),
        say=lambda text: print_stderr(f"gilscope: {text}"),
        draw=None if args.check else _drawing(args.out),
        private=of_this_machine(os.environ, hosts_of(sources)), by=args.by, command=_command(args), date=today(),
        works={each.name: described_work(each) for each in catalog.WORKLOADS}, source_url=args.source_url or "")
    if args.check:
        return _check(request)
    problems = make_site(request, args.out)
    for problem in problems:
        print_stderr(f"gilscope: {problem}")
    home = args.out / HOME
    print_stdout(f"made {home}")
    if args.open and not webbrowser.open(home.resolve().as_uri()):
        print_stderr(f"gilscope: found no browser to open {home}")
    return DAMAGED if problems else 0


def _command(args: argparse.Namespace) -> str:
    """Return the command that makes the site, without the folders above those that it names."""
    words = ["gilscope", "site", *args.results]
    words += [] if args.out is None else ["--out", args.out.name or "site"]
    words += [] if args.title == TITLE else ["--title", args.title]
    words += ["--url", args.url] if args.url else []
    words += ["--by", args.by] if args.by else []
    words += ["--source-url", args.source_url] if args.source_url else []
    return without_folders(shlex.join(words))


def described_work(workload: Workload) -> dict[str, str]:
    """Return a sentence about a workload, the source of its task, and where that is: `file` and `line`."""
    lines, first = inspect.getsourcelines(workload.task)
    file = Path(inspect.getfile(workload.task)).relative_to(Path(catalog.__file__).parent)
    return {"summary": workload.summary, "source": "".join(lines).rstrip(), "file": f"workloads/{file.as_posix()}",
            "line": str(first)}


def _check(request: SiteRequest) -> int:
    leaks, problems = check_site(request)
    for problem in problems:
        print_stderr(f"gilscope: {problem}")
    lines = leak_lines(leaks)
    print_stdout("\n".join(lines) or "nothing private would be "
                               f"published{' from the runs that could be read' if problems else ''}")
    return int(bool(lines)) or (DAMAGED if problems else 0)


def _about(of: Run, folder: Path) -> ExperimentSummary:
    """Return the claims, findings and pictures of an experiment's run in `folder`."""
    experiment = experiment_of(of)
    smoke = of.options.get("effort") == EffortLevel.SMOKE
    return ExperimentSummary(
        title=experiment.title, claim=experiment.claim, sources="; ".join(each.cited() for each in experiment.sources),
        findings=() if smoke else experiment.findings(experiment.results(of, folder)),
        pictures=tuple(pictures_of(experiment, of, folder)),
        document=lambda pictures: document(experiment, of, folder, pictures),
    )


def _drawing(out: Path) -> Callable[[Run, Path, Path], list[Picture]]:
    """Return what draws the figures of an experiment; it finds the Python that draws once, when it is needed."""
    python = cache(lambda: python_that_draws(f"gilscope site --out {out}"))
    return lambda of, folder, into: draw_pictures(of, folder, python(), into)


def web_address(text: str) -> str:
    """Return the address of a folder on the web, quoted for Markdown.

    Raises:
        argparse.ArgumentTypeError: It is no address.
    """
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no address: {error}") from None
    if parts.scheme not in {"http", "https"}:
        raise argparse.ArgumentTypeError(f"{text!r} does not begin with http:// or https://")
    if not _HOST.fullmatch(parts.netloc):
        raise argparse.ArgumentTypeError(f"{text!r} names no host, as https://me.github.io/results/ does")
    if parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{text!r} has a '?' or '#': name the folder of the site")
    return f"{parts.scheme}://{parts.netloc}{quote(parts.path, safe=_KEPT)}"
