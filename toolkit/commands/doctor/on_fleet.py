"""`gilscope doctor --list FILE --fleet ADDRESS`: the hosts of a cluster answer, one package at a time each."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gilscope.toolkit.commands.doctor.survey_question import AnswerSource, question_of
from gilscope.toolkit.commands.fleet.cluster import cluster, from_any_folder, meet_ours
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.errors import BuildError, UnknownNameError
from gilscope.toolkit.evaluate.survey import on_host
from gilscope.toolkit.evaluate.survey.answer import PackageAnswer
from gilscope.toolkit.fleet.dask_cluster import Connection, another_version
from gilscope.toolkit.fleet.host_differences import builds_of
from gilscope.toolkit.units import counted, inflect, list_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Generator, Iterator, Sequence

    from gilscope.toolkit.evaluate.survey.asking import SurveyQuestion
    from gilscope.toolkit.fleet.host_differences import Facts

_LONGEST = 300   # characters of an error of another machine's


@contextlib.contextmanager
def fleet_asked(args: argparse.Namespace) -> Iterator[AnswerSource]:
    """Give the hosts of the cluster that --fleet names; one of this machine is started, and ended.

    Raises:
        ToolkitError: no host has all builds, or all have another gilscope.
        FleetLostError: the cluster cannot be reached, or has no host.
    """
    with cluster(args.fleet, "answer for one package at a time each") as address, Connection(address) as connection:
        met = meet_ours(connection)
        if met.others:
            print_stderr(f"{list_text([*met.others])} {_are(met.others)} left out: {another_version(met.others)}")
        labels = _labels(met.facts, args)
        facts = _having(met.facts, labels, args)
        question = question_of(args, labels)
        question = replace(question, added=tuple(map(from_any_folder, question.added)))
        print_stderr(f"{counted(len(facts), 'host')} for {', '.join(question.builds)}")
        among = [*facts] if met.others or len(facts) < len(met.facts) else None
        yield AnswerSource(question=question, depends=(*_known_by(facts, question), question.key),
                           ask=partial(_ask, connection, question, among))


def _ask(
    connection: Connection, question: SurveyQuestion, among: Sequence[str] | None, packages: Sequence[str]
) -> Generator[PackageAnswer]:
    survey = secrets.token_hex(8)
    try:
        for package, host, told in connection.spread(on_host.answer, packages, survey, question, among=among):
            answer = told if isinstance(told, PackageAnswer) else PackageAnswer(
                package=package, problem=f"no host could answer: {type(told).__name__}: {told}"[:_LONGEST])
            yield replace(answer, host=host)
    except BaseException:   # also that nobody wants the others
        connection.tell(on_host.end, survey)
        raise


def _labels(facts: Facts, args: argparse.Namespace) -> list[str]:
    """Return the builds that are asked for, or the free-threaded ones that every host has."""
    hosts = {name: builds_of(each) for name, each in facts.items()}
    if args.builds is None:
        every = [label for label, build in next(iter(hosts.values())).items()
                 if build.free_threaded and all(label in each for each in hosts.values())]
        if not every:
            raise BuildError("no free-threaded build is on every host: `gilscope fleet ADDRESS` shows which have what; "
                             "name builds with --builds")
        return every
    return [label.strip() for label in args.builds.split(",") if label.strip()]


def _having(facts: Facts, labels: Sequence[str], args: argparse.Namespace) -> Facts:
    """Return the hosts that have these builds, and say who is left out."""
    added = {each.partition("=")[0] for each in args.build}   # which hosts find at its path, or say so
    lacking = {name: [label for label in labels if label not in added and label not in builds_of(each)]
               for name, each in facts.items()}
    if all(lacking.values()):
        raise UnknownNameError(f"no host has {list_text(labels)}: `gilscope fleet ADDRESS` shows which hosts have what")
    for name, those in lacking.items():
        if those:
            print_stderr(f"{name} is left out: it has no build {list_text(those)}")
    return {name: each for name, each in facts.items() if not lacking[name]}


def _are(hosts: Collection[str]) -> str:
    return inflect(len(hosts), "is", "are")


def _known_by(facts: Facts, question: SurveyQuestion) -> Iterator[str]:
    """Yield the differences between the builds of the hosts; without any, each host can answer for all."""
    for label in question.builds:
        versions = {build.version for each in facts.values() if (build := builds_of(each).get(label))}
        yield f"{label} {' '.join(sorted(versions))} on a fleet"
