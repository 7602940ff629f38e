"""`gilscope evaluate`: should a project move to free-threading or subinterpreters, and what stands in the way?"""

from __future__ import annotations

import argparse
import os
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.builds.find import find_builds, select_free_threaded
from gilscope.toolkit.builds.inspection import is_released, version_key
from gilscope.toolkit.commands.options.common import add_build, add_wait_quiet, duration, positive
from gilscope.toolkit.commands.options.files import PLAN, STDOUT, PlanFileOption, add_page
from gilscope.toolkit.commands.output.figures import python_that_draws
from gilscope.toolkit.commands.output.pages import HtmlFile
from gilscope.toolkit.commands.output.reports import ReportOutput, add_full, add_output, requested
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.commands.summaries import SUMMARIES
from gilscope.toolkit.errors import BuildError, ToolkitError, UnknownNameError, cannot_write
from gilscope.toolkit.evaluate.cache import EvaluationCache
from gilscope.toolkit.evaluate.facts import PlanStep
from gilscope.toolkit.evaluate.pipeline import Evaluator
from gilscope.toolkit.evaluate.probes.forced import described
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.readings import own_finding
from gilscope.toolkit.evaluate.request import BUDGET, HAMMER_SECONDS, EvaluationRequest
from gilscope.toolkit.evaluate.requirements.locks import read_lock
from gilscope.toolkit.evaluate.sections import known
from gilscope.toolkit.evaluate.verdict import exit_code
from gilscope.toolkit.evaluate.views import answer, github_workflow, own_extensions, picture, plan_file, screen
from gilscope.toolkit.evaluate.views.explain_package import Beside, explain
from gilscope.toolkit.evaluate.views.json_document import plain
from gilscope.toolkit.report.document import Document, Lines, Picture
from gilscope.toolkit.report.figures.drawing import CannotDrawError, draw_figures
from gilscope.toolkit.site.single.verdicts import conclusion_cards, verdict_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.builds.find import FoundBuilds
    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.document import Section

NEWEST = 2               # final free-threaded releases that are looked at when none are named


def several(text: str) -> int:
    """Return a whole number of threads from 2 on."""
    if (number := positive(text)) < 2:  # the word's meaning
        raise argparse.ArgumentTypeError(f"{text!r}: it takes two threads at least to show a race")
    return number


def add_parser(commands: Any) -> None:
    """Add the parser of `gilscope evaluate`."""
    parser = commands.add_parser(
        "evaluate", help=SUMMARIES["evaluate"],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Examine a project on free-threaded builds: what its packages declare and do when imported, how\n"
        "its tests behave, and which data races they show. If a part is missing, the rest is still examined;\n"
        "'Not looked at' lists what is missing, and the confidence is lower. The project's code never runs in\n"
        "gilscope's own process. Exit with 1 if something blocks every build without a GIL.",
        epilog="examples:\n  gilscope evaluate .\n  gilscope evaluate ~/src/svc --lock uv.lock --builds 3.14t,3.15t\n"
        "  gilscope evaluate . --tests 'pytest -q tests/unit' --workload svc.load:request --budget 5m\n"
        "  gilscope evaluate . --explain lxml\n"
        "Installed packages are cached for later calls; gilscope doctor --clear-cache removes them.",
    )
    parser.add_argument("path", metavar="PATH", type=Path, help="The project's root.")
    _add_project(parser.add_argument_group("what to examine"))
    _add_code(parser.add_argument_group("what to run"))
    _add_effort(parser.add_argument_group("how long, and what may be done"))
    results = parser.add_argument_group("results")
    _add_results(results)
    add_full(results, "each target with its numbers, every fact, what was not looked at",
             "the verdict, why, what to do next")
    add_output(results, "the verdict")
    add_page(results, "the verdict")
    parser.set_defaults(run=run)


def _add_project(group: Any) -> None:
    """Add what the project is, and on which builds it is looked at."""
    group.add_argument("--lock", metavar="FILE", type=Path,
                       help="Take the versions from this lock file: uv.lock, pylock.toml, poetry.lock, or pinned "
                            "requirements (default: the project's lock file, or the newest versions if it has none).")
    group.add_argument("--extra", metavar="NAME", action="append", default=[],
                       help="Include this extra of the project (default: no extras and no development dependencies). "
                            "Repeatable.")
    group.add_argument("--builds", metavar="LABELS",
                       help=f"Examine these builds, e.g. 3.14t,3.15t (default: the {NEWEST} newest final releases "
                            "without a GIL). The matching builds with a GIL are judged for subinterpreters and "
                            "processes.")
    add_build(group)


def _add_code(group: Any) -> None:
    """Add what is run of the project."""
    group.add_argument("--tests", metavar="COMMAND",
                       help="Run the tests with this command, in quotes (default: python -m pytest -q, if there are "
                            "tests). Use it for another test runner, or to leave out slow tests.")
    group.add_argument("--workload", metavar="SCRIPT|MODULE:FUNCTION",
                       help="Run this script with its arguments, in quotes, or call this function, plain or async, "
                            "without arguments, from several threads. Measures cost, gain and waits (default: cost "
                            "from the tests; no gain).")
    group.add_argument("--payloads", metavar="MODULE:NAME",
                       help="Call the function of --workload with each of these payloads in turn; all payloads "
                            "together count as one call. They come from a sequence, or from a function that returns "
                            "one. Use it to evaluate the function and payloads that `gilscope run` measures.")
    group.add_argument("--calls", metavar="N", type=positive,
                       help="Call the function of --workload N times from each thread under the race checker, as far "
                            "as the budget allows (default: at most 25 times, and 4 seconds). Use it for state that "
                            "only many calls reach, such as a full cache. Cost and gain choose their number.")
    group.add_argument("--threads", metavar="N", type=several,
                       help="Run each test in N threads at once, by pytest-run-parallel, and call the workload from "
                            "N threads (default: run the tests unchanged, and call the workload from 4 threads). Use "
                            "it to find data races if the tests start no threads.")
    group.add_argument("--hammer", metavar="TIME", type=duration, nargs="?", const=HAMMER_SECONDS, default=0.0,
                       help="For TIME (default: 20s) of the cores, up to 5 times as long while other programs use "
                            "them and --budget allows, call the project's own C functions with arguments from its "
                            "tests and doctests, from as many threads as --threads says (default: 4) on shared "
                            "objects, in processes that may crash. Use it to see whether C code that no race checker "
                            "reads crashes, hangs, loses counts or gives other results than one thread.")


def _add_effort(group: Any) -> None:
    """Add how long it may take and what it may do."""
    group.add_argument("--budget", metavar="TIME", type=duration, default=BUDGET,
                       help=f"Leave out measurements that do not fit into TIME (default: {BUDGET / 60:.0f}m). "
                            "Installing packages and building the project are always completed; packages are cached "
                            "for later calls.")
    add_wait_quiet(group, "measuring cost and gain")
    group.add_argument("--fresh", action="store_true",
                       help="Measure everything again. By default, results of the last day are reused if nothing has "
                            "changed: files, environment variables that the project's files mention, builds, options.")
    group.add_argument("--offline", action="store_true",
                       help="Download nothing; use what earlier calls installed, and the lock file's metadata.")
    group.add_argument("--build-sdists", action="store_true",
                       help="Build packages without a wheel from source. Runs the packages' build scripts.")


def _add_results(group: Any) -> None:
    """Add what is shown and written."""
    group.add_argument("--explain", metavar="NAME",
                       help="Only show all facts about a package, an extension module or its file, or one of the "
                            "project's own extension sources ('extensions': all of them).")
    group.add_argument("--plan", action=PlanFileOption,
                       help="Write the steps of a migration with the state of each as Markdown to FILE, which ends in "
                            f".md (default: {PLAN} here). If FILE exists, the new plan shows what changed.")
    group.add_argument("--figure", metavar="FOLDER", type=Path,
                       help="Draw gain and cost into FOLDER as SVG and PNG. The Markdown report includes them.")
    group.add_argument("--ci", choices=("github",),
                       help=f"Write {github_workflow.PLACE} into the project: its tests on builds without a GIL, and "
                            "wheels where it has C code. An existing file is not overwritten.")


def request_of(args: argparse.Namespace) -> EvaluationRequest:
    """Return the request of a call."""
    return EvaluationRequest(
        path=args.path, lock=args.lock, tests=args.tests, workload=args.workload, payloads=args.payloads,
        calls=args.calls or 0, budget=args.budget,
        offline=args.offline, sdists=args.build_sdists, wait_quiet=args.wait_quiet, threads=args.threads or 0,
        hammer=args.hammer, extras=tuple(args.extra), labels=args.builds, added=tuple(args.build),
        ci_file=github_workflow.PLACE if args.ci else "")


def run(args: argparse.Namespace) -> int:
    """Evaluate the project; return 1 when something blocks it on every build."""
    asked = request_of(args)
    find_project(asked.path, lock=asked.lock, extras=asked.extras)   # mistakes are reported before missing builds
    page = HtmlFile.requested(args)
    found = find_builds(args.build, project_dir=Path.cwd())
    if args.ci and (place := args.path / github_workflow.PLACE).exists():
        raise ToolkitError(f"{place} is there already: remove it to have it written anew, or leave --ci out")
    evaluator = Evaluator(
        asked, _targets(found, args.builds), found.builds, print_stderr,
        open_cache=lambda project, builds: EvaluationCache(project.root, builds, fresh=args.fresh,
                                                           outputs=_outputs(args)))
    try:
        evaluation = evaluator.explain(args.explain) if args.explain else evaluator.run()
    except KeyboardInterrupt:
        print_stderr("the finished parts are saved: run the same command again to continue")
        raise
    output = ReportOutput(args)
    in_short, whole = _documents(evaluation, args)
    output.show_answer(in_short, lambda: _with_picture(evaluation, whole(), args), full=args.full)
    output.finish(lambda: plain(evaluation))
    if args.ci:
        place = args.path / github_workflow.PLACE
        _write(place, github_workflow.workflow(
            evaluation.collected, evaluation.builds, extensions=evaluation.extensions.any,
            installed=_installed(evaluation)))
        print_stderr(f"wrote {place}")
    if page:
        cards = [] if args.explain else conclusion_cards(plain(evaluation))
        page.write("verdict.html", verdict_values(whole(), cards), root=str(evaluation.project.root))
    return exit_code(evaluation)


def _documents(
    evaluation: Evaluation, args: argparse.Namespace,
) -> tuple[Callable[[], Document], Callable[[], Document]]:
    """Return what makes the answer and what makes the whole report, each with the plan; write the plan now."""
    if args.explain:
        explanation = cache(lambda: explained(evaluation, args.explain))
        return explanation, explanation
    planned = _planned(evaluation, args.plan) if args.plan else []

    def with_plan(make: Callable[[Evaluation], Document]) -> Callable[[], Document]:
        return cache(lambda: Document((*make(evaluation).sections, *planned)))

    return with_plan(screen.answer_document), with_plan(screen.document)


def _installed(evaluation: Evaluation) -> github_workflow.InstalledModules:
    """Return the modules that installing the project gave on every build without a GIL; empty if it was not built."""
    made = [installed for label in evaluation.labels for finding in own_finding(evaluation, label)
            if (installed := finding.seen.distribution)]
    top_level = [set(each.modules) for each in made]
    compiled = [{name for name, _ in each.extensions} for each in made]
    return github_workflow.InstalledModules(
        top_level=tuple(sorted(set.intersection(*top_level))) if made else (),
        compiled=tuple(sorted(set.intersection(*compiled))) if made else ())


def _with_picture(evaluation: Evaluation, document: Document, args: argparse.Namespace) -> Document:
    """Return the document as Markdown has it: with the figure behind the answer, where one can be drawn."""
    if args.figure is None or args.explain:
        return document
    if (shown := picture.figure(evaluation)) is None:
        print_stderr("no figure: neither gain nor cost was measured")
        return document
    python = python_that_draws("gilscope evaluate ... --figure")
    if python is None:
        return document
    try:
        (drawn,) = draw_figures(python, [shown], args.figure)
    except CannotDrawError as error:
        print_stderr(str(error))
        return document
    print_stderr(f"wrote {drawn}")
    beside = Path(args.markdown).parent if args.markdown not in {None, STDOUT} else Path()
    answer, rest = document.sections[:2], document.sections[2:]
    return Document((*answer, Picture(shown.title, os.path.relpath(drawn, beside)), *rest))


def _outputs(args: argparse.Namespace) -> list[Path]:
    """Return the files that this call writes."""
    named = [*(name for _, name in requested(args)), args.html, args.plan, args.path / github_workflow.PLACE]
    if args.figure is not None:
        named += [args.figure / f"{picture.NAME}{suffix}" for suffix in (".svg", ".png")]
    return [Path(each) for each in named if each is not None and each != STDOUT]


def _planned(evaluation: Evaluation, place: Path) -> list[Section]:
    """Write the plan, and return it with what moved since it was written before."""
    try:
        before = plan_file.read(read_text(place))
    except (OSError, UnicodeDecodeError):
        before = plan_file.Earlier()
    except ValueError as error:
        print_stderr(f"{place}: what moved is not known: {error}")
        before = plan_file.Earlier()
    _write(place, plan_file.markdown(evaluation, before, time.strftime("%Y-%m-%d")))
    lines = (*answer.steps(evaluation.plan), *plan_file.since(evaluation, before))
    return [Lines(f"Plan (in {place})", lines)]


def _write(place: Path, text: str) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(str(place), error) from error


def _targets(found: FoundBuilds, wanted: str | None) -> tuple[Build, ...]:
    if wanted is not None:
        return select_free_threaded(found, wanted)
    free = sorted((build for build in found.builds if build.free_threaded), key=lambda each: version_key(each.version))
    if not free:
        raise BuildError("no free-threaded build is at hand: gilscope builds install 3.14t gets one")
    final = [build for build in free if is_released(build.version) or build.source == "explicit"]
    if not final:
        newest = free[-1]
        print_stderr(f"no final release without a GIL is at hand: {newest.label} is {newest.version}")
    return tuple((final or free)[-NEWEST:])


def explained(evaluation: Evaluation, name: str) -> Document:
    """Return everything known of a package, an extension module, a file or a source called `name`.

    Raises:
        UnknownNameError: nothing is.
    """
    reports = [report for each in evaluation.packages.values() if (report := known(each))]
    lock = evaluation.project.lock
    beside = Beside(
        project=evaluation.project.name, builds=evaluation.builds,
        locked=read_lock(lock) if lock and lock.is_file() else (),   # it may be gone by now
        places={label: tests.imports for label in evaluation.labels if (tests := known(evaluation.tests[label]))},
        forced={label: described(speed.forced) for label, speed in evaluation.speed.items()
                if speed.forced is not None})
    reports += [own.report for own in own_extensions.builds_of(evaluation) if own.report]
    document = explain(reports, name, beside)
    document = Document((*document.sections, *own_extensions.explained(evaluation, name)))
    if not document.sections:
        raise _unknown(evaluation, name, sorted({finding.name for each in reports for finding in each.findings}))
    return document


def _unknown(evaluation: Evaluation, name: str, names: list[str]) -> UnknownNameError:
    """Return why nothing is known of a name, and which can be asked for."""
    if name == PlanStep.EXTENSIONS.key:
        return UnknownNameError(f"{evaluation.project.name} has no extension modules of its own")
    can = f"; --explain knows {', '.join(names)}" if names else ""
    if evaluation.development and canonicalize_name(name) in map(canonicalize_name, evaluation.development.packages):
        return UnknownNameError(f"{name} is for development alone, so no part of the verdict: ask gilscope doctor "
                                f"{name}{can}")
    return UnknownNameError(f"no package, extension module or file {name!r} among what was looked at{can}")
