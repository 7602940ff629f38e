"""`gilscope doctor --list --fleet`: which builds are asked about, and what becomes of answers; a made-up cluster."""

import dataclasses
from argparse import Namespace
from contextlib import closing, nullcontext
from types import SimpleNamespace

import pytest

from gilscope.toolkit.cli import main, make_parser
from gilscope.toolkit.commands.doctor import on_fleet
from gilscope.toolkit.commands.fleet.cluster import FleetRoster
from gilscope.toolkit.errors import BuildError, UnknownNameError
from gilscope.toolkit.evaluate.survey import on_host
from gilscope.toolkit.evaluate.survey.answer import PackageAnswer
from gilscope.toolkit.evaluate.survey.asking import SurveyQuestion
from tests.fakes import make_build

pytestmark = pytest.mark.newest

QUESTION = SurveyQuestion(builds=("3.14t",))


def facts(**labels):
    return {host: {"builds": [dataclasses.asdict(make_build(label)) for label in has]} for host, has in labels.items()}


def labels(told, builds=None, added=()):
    return on_fleet._labels(told, Namespace(builds=builds, build=list(added)))


def test_free_threaded_builds_of_every_host_are_asked_about():
    assert labels(facts(one=["3.14", "3.14t", "3.15t"], two=["3.15t", "3.15"])) == ["3.15t"]


def test_hosts_without_a_common_build_are_refused():
    with pytest.raises(BuildError, match="no free-threaded build is on every host"):
        labels(facts(one=["3.14t"], two=["3.15t"]))


def test_host_that_lacks_a_build_is_left_out(capsys):
    told = facts(one=["3.14t"], two=["3.14t", "3.15t"])

    def having(builds, added=()):
        args = Namespace(builds=builds, build=list(added))
        return [*on_fleet._having(told, on_fleet._labels(told, args), args)]

    assert having("3.14t") == ["one", "two"]
    assert having("mine", ["mine=/opt/bin/python"]) == ["one", "two"]   # that a host lacks it is its answer
    assert capsys.readouterr().err == ""
    assert having("3.14t, 3.15t") == ["two"]
    assert capsys.readouterr().err == "one is left out: it has no build 3.15t\n"
    with pytest.raises(UnknownNameError, match=r"no host has 3\.15t and 3\.16t"):
        having("3.15t,3.16t")


class Cluster:
    """A connection whose hosts answer in one go."""

    def __init__(self, answers):
        self.answers = answers
        self.told = []

    def spread(self, function, items, survey, question, among):
        assert among == ["rome"]
        assert function is on_host.answer
        assert question == QUESTION
        self.survey = survey
        yield from ((item, *self.answers[item]) for item in items)

    def tell(self, function, *words):
        self.told.append((function, words))


def test_answers_have_their_host_and_errors_are_answers():
    cluster = Cluster({"one": ("rome", PackageAnswer(package="one")), "two": ("", RuntimeError("4 workers died"))})
    with closing(on_fleet._ask(cluster, QUESTION, ["rome"], ["one", "two"])) as coming:
        first, second = coming
    assert first == PackageAnswer(package="one", host="rome")
    assert second.problem == "no host could answer: RuntimeError: 4 workers died"
    assert not cluster.told


def test_what_is_being_asked_ends_on_every_host_when_nobody_wants_it_any_more():
    cluster = Cluster({"one": ("rome", PackageAnswer(package="one")), "two": ("rome", PackageAnswer(package="two"))})
    with closing(on_fleet._ask(cluster, QUESTION, ["rome"], ["one", "two"])) as coming:
        next(coming)
    assert cluster.told == [(on_host.end, (cluster.survey,))]


@pytest.mark.parametrize(("hosts", "others", "asked"), [
    ({"rome": ["3.14t"]}, {"newer": "9.9"}, ["rome"]),                # another gilscope
    ({"rome": ["3.14t"], "oslo": ["3.14"]}, {}, ["rome"]),            # no such build
    ({"rome": ["3.14t"], "oslo": ["3.14t"]}, {}, None),               # all of them, also those that come later
])
def test_hosts_that_are_left_out_are_asked_nothing(hosts, others, asked, monkeypatch, capsys):
    names = []

    def spread(*_, among):
        names.append(among)
        return iter(())

    connection = SimpleNamespace(spread=spread)
    monkeypatch.setattr(on_fleet, "cluster", lambda *_: nullcontext("tcp://x:1"))
    monkeypatch.setattr(on_fleet, "Connection", lambda _: nullcontext(connection))
    monkeypatch.setattr(on_fleet, "meet_ours", lambda _: FleetRoster(facts=facts(**hosts), others=others, notes=[]))
    args = make_parser(("doctor",)).parse_args(["doctor", "--list", "x", "--fleet", "tcp://x:1", "--builds", "3.14t"])
    with on_fleet.fleet_asked(args) as survey:
        assert [*survey.ask(["one"])] == []
    assert names == [asked]
    assert ("left out" in capsys.readouterr().err) == (asked is not None)


def test_fleet_without_a_list_is_refused(capsys):
    assert main(["doctor", "lxml", "--fleet", "local:2"]) == 2
    assert "--fleet is for the packages of a list: name it with --list" in capsys.readouterr().err


def test_fleet_that_is_none_is_refused_before_anything_is_started(tmp_path, capsys):
    (tmp_path / "packages.txt").write_text("lxml\n")
    assert main(["doctor", "--list", str(tmp_path / "packages.txt"), "--fleet", "local:0"]) == 2
    assert "or local:2 for 2 hosts on this machine" in capsys.readouterr().err
