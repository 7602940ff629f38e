"""`gilscope doctor --list FILE`: each package of a list by itself, several at once, answers as they come."""

from __future__ import annotations

import argparse
import contextlib
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gilscope.toolkit.builds.environment import identity
from gilscope.toolkit.children.at_once import as_they_come
from gilscope.toolkit.commands.doctor.on_fleet import fleet_asked
from gilscope.toolkit.commands.doctor.survey_question import AnswerSource, question_of
from gilscope.toolkit.commands.options.files import STDOUT
from gilscope.toolkit.commands.output.reports import ReportOutput, form_on_stdout
from gilscope.toolkit.commands.streams import print_stderr, put
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.errors import ToolkitError, cannot_write
from gilscope.toolkit.escaping import in_json
from gilscope.toolkit.evaluate.survey import report
from gilscope.toolkit.evaluate.survey.answer import to_line
from gilscope.toolkit.evaluate.survey.asking import ask
from gilscope.toolkit.evaluate.survey.cache import AnswerCache
from gilscope.toolkit.evaluate.survey.packages import listed_packages
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from gilscope.toolkit.evaluate.survey.answer import PackageAnswer
    from gilscope.toolkit.model import Build

LINES = ".jsonl"
UNANSWERED = 3   # as of a cell that failed
CORES_EACH = 2   # a package takes two installers, or imports and their counterparts

# Attributes of the command line that are about one answer: how a user writes them.
_OF_ONE = {"packages": "PACKAGE", "lock": "--lock", "explain": "--explain", "offline": "--offline", "html": "--html",
           "by": "--by"}


def lines_file(text: str) -> str:
    """Return the file for lines of JSON; argparse shows why a file is refused."""
    if text != STDOUT and not text.endswith(LINES):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {LINES}; lines of JSON do, - is standard output")
    if text != STDOUT and not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(Path(text).parent)!r}")
    return text


def refuse_beside_list(args: argparse.Namespace) -> None:
    """Refuse what does not go with a list, or only with one.

    Raises:
        ToolkitError: such an option is there.
    """
    if not args.list:
        option = "--lines" if args.lines else "--fleet"
        raise ToolkitError(f"{option} is for the packages of a list: name it with --list")
    if given := [option for name, option in _OF_ONE.items() if getattr(args, name)]:
        raise ToolkitError(f"{', '.join(given)} cannot be used with --list, which asks about each package by itself: "
                           "leave one of them out")
    if args.lines == STDOUT and (rival := form_on_stdout(args)):
        raise ToolkitError(f"--lines and {rival.option} cannot both be on standard output: name a FILE")


def survey(args: argparse.Namespace, targets: Callable[[], Sequence[Build]]) -> int:
    """Ask about each package of the list; return 1 when anything stands in the way, 3 when an answer is missing.

    Args:
        args: The command line.
        targets: Returns the builds to ask on, where this machine answers.
    """
    packages = listed_packages(args.list)
    found: dict[str, PackageAnswer] = {}
    with _asked(args, targets) as asked, _lines(args.lines) as write:
        try:
            # Closed whatever happens here: what is being asked must not go on without us.
            with contextlib.closing(_answers(packages, asked, AnswerCache(asked.depends))) as coming:
                for answer in coming:
                    found[answer.package] = answer
                    write(json.dumps(to_line(answer)))
                    if not answer.kept:
                        print_stderr(f"{len(found)} of {len(packages)}: {report.progress_line(answer)}")
        except KeyboardInterrupt:
            print_stderr("the answers so far are saved: run the same command again to continue")
            raise
    answers = [found[package] for package in packages]
    labels = asked.question.builds
    output = ReportOutput(args)
    if args.lines != STDOUT:
        output.show(report.document(answers, labels))
    output.finish(lambda: report.plain(answers, labels))
    if any(answer.problem for answer in answers):
        return UNANSWERED
    return int(any(answer.blocked for answer in answers))


@contextlib.contextmanager
def _asked(args: argparse.Namespace, targets: Callable[[], Sequence[Build]]) -> Iterator[AnswerSource]:
    """Give who answers: the hosts of a fleet, or this machine."""
    if args.fleet:
        with fleet_asked(args) as asked:
            yield asked
        return
    builds = targets()
    question = question_of(args, [build.label for build in builds])
    most = max(1, usable_cores() // CORES_EACH)
    yield AnswerSource(question=question, depends=(*map(_known_by, builds), question.key),
                       ask=lambda packages: as_they_come(partial(ask, question=question), packages, most))


def _answers(packages: Sequence[str], asked: AnswerSource, kept: AnswerCache) -> Generator[PackageAnswer]:
    """Yield the stored answers, then the others as they come; store these."""
    earlier = {package: answer for package in packages if (answer := kept.get(package))}
    if earlier:
        print_stderr(f"using {counted(len(earlier), 'answer')} from the last day; --clear-cache removes them")
    yield from earlier.values()
    rest = [package for package in packages if package not in earlier]
    with contextlib.closing(asked.ask(rest)) as coming:
        for answer in coming:
            kept.put(answer)
            yield answer


def _known_by(build: Build) -> str:
    return f"{build.label} {identity(build)}"


@contextlib.contextmanager
def _lines(name: str | None) -> Iterator[Callable[[str], None]]:
    """Give what writes a line of JSON where it was asked for, at once."""
    if name is None or name == STDOUT:
        yield (lambda _: None) if name is None else (lambda line: put(in_json(line)))
        return
    try:
        file = Path(name).open("w", encoding="utf-8")  # noqa: SIM115  only opening it may fail here
    except OSError as error:
        raise cannot_write(name, error) from error
    with file:
        yield partial(_write, file)


def _write(file: TextIO, line: str) -> None:
    try:
        file.write(in_json(line) + "\n")
        file.flush()
    except OSError as error:
        raise cannot_write(file.name, error) from error
