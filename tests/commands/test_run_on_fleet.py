"""`gilscope run --fleet`: what each host is told means what was asked here."""

import dataclasses
import json

import pytest

from gilscope.toolkit.cli import main, make_parser
from gilscope.toolkit.commands.run import on_fleet
from gilscope.toolkit.commands.run.earlier_run import has_enough
from gilscope.toolkit.commands.run.on_fleet import words_for_hosts, words_to_go_on
from gilscope.toolkit.commands.run.request import make_selection, make_settings
from gilscope.toolkit.fleet.measuring import FleetRequest
from gilscope.toolkit.measure.settings import RunRequest
from tests.commands.test_fleet import Cluster
from tests.fakes import make_build, make_run
from tests.fleet.test_host_differences import host
from tests.test_store import write

HERE = {"fleet", "label", "json", "markdown", "dry_run", "resume", "requirements"}   # this machine's, not the hosts'


def parsed(*words):
    return make_parser(("run",)).parse_args(["run", *words])


@pytest.mark.parametrize("words", [
    (),
    ("primes", "sleep", "--builds", "3.14,3.14t", "--models", "threads,processes", "--workers", "1,2,4"),
    ("--quick", "--strict", "--wait-quiet", "--seed", "7", "--build", "mine=/opt/venv/bin/python"),
    ("--rigorous", "--rounds", "12", "--budget", "90s", "--resolution", "2.5%", "--timeout", "5m", "--size", "large"),
    ("countdown", "--task-length", "250us,1ms,10s", "--phases", "both", "--with", "numpy>=2", "--with", "attrs"),
    ("mine:work", "--payload", "-1", "--tasks", "3", "--check", "mine:check", "--kind", "io"),
    ("mine:work", "--payloads", "mine:payloads", "--async-form", "mine:awork"),
])
def test_a_host_is_told_what_was_asked(words):
    asked = vars(parsed(*words, "--fleet", "local:2", "--label", "x", "--json"))
    told = vars(parsed(*words_for_hosts(parsed(*words, "--fleet", "local:2", "--label", "x", "--json"))))
    assert {name for name in asked if asked[name] != told[name]} - HERE <= {"path"}


def test_a_function_of_the_users_is_looked_for_where_it_is_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert parsed(*words_for_hosts(parsed("mine:work", "--payload", "1"))).path == [tmp_path]
    assert parsed(*words_for_hosts(parsed("primes"))).path is None


def test_a_build_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = words_for_hosts(parsed("--build", "mine=venv/bin/python", "--build", "its=/opt/venv"))
    assert parsed(*told).build == [f"mine={tmp_path}/venv/bin/python", "its=/opt/venv"]


def test_what_a_requirements_file_lists_is_told(tmp_path):
    (tmp_path / "requirements.txt").write_text("attrs==25.1.0\n")
    told = words_for_hosts(parsed("mine:work", "--payload", "1", "--requirements", str(tmp_path / "requirements.txt")))
    assert parsed(*told).packages == ["attrs==25.1.0"]


def test_a_run_that_goes_on_is_told_how_far():
    assert words_to_go_on(parsed("--resume", "x", "--rounds", "9")) == ("--rounds=9",)
    assert words_to_go_on(parsed("--resume", "x", "--wait-quiet")) == ("--wait-quiet",)
    assert words_to_go_on(parsed("--resume", "x")) == ()


@pytest.mark.parametrize("words", [["--builds", "3.14, 3.14t"], []])   # none: all hosts take these two by themselves
def test_builds_that_are_not_measured_are_not_complained_of(words, capfd):
    told = {"rome": host(), "oslo": host(builds=[*host()["builds"], dataclasses.asdict(make_build("3.12"))])}
    cluster = Cluster(**told)("tcp://x:1")
    args = parsed("primes", *words)
    asked = FleetRequest(label="x", command=words_for_hosts(args), again=())
    on_fleet._check_hosts(cluster, args, asked)
    assert "differs" not in capfd.readouterr().err
    on_fleet._check_hosts(cluster, parsed("primes", "--builds", "3.12"), dataclasses.replace(
        asked, command=words_for_hosts(parsed("primes", "--builds", "3.12"))))
    assert "differs: oslo has the build 3.12, rome has not" in capfd.readouterr().err


@pytest.mark.parametrize(("words", "said"), [
    (["--fleet", "local:0"], "or local:2 for 2 hosts on this machine"),
    (["--fleet", "local:2", "--dry-run"], "leave --fleet out"),
    (["--fleet", "local:2", "nothing"], "unknown workload 'nothing'"),
    (["--fleet", "local:2", "--resume", "nothing"], "nothing is no run of a fleet"),
])
def test_mistakes_end_before_anything_is_started(words, said, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *words]) == 2
    assert said in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_host_has_enough_by_the_rule_of_resume(tmp_path):
    args = parsed("noop", "--rounds", "3")
    asked = RunRequest(selection=make_selection(args), settings=make_settings(args), units={}, paths=(), packages=())
    run = dataclasses.replace(make_run(rounds=3), options=json.loads(json.dumps(asked.to_options())))
    path = write(dataclasses.replace(run, failures=()), tmp_path, "whole")
    assert has_enough(path, None, None)
    assert has_enough(path, 3, None)
    assert not has_enough(path, 4, None)
    assert not has_enough(write(run, tmp_path, "lacking"), None, None)   # cells that failed are tried again


def test_of_what_is_damaged_it_is_not_known_whether_it_is_enough(tmp_path):
    assert not has_enough(write(make_run(rounds=3), tmp_path), None, None)   # it does not say what was asked
    assert not has_enough(tmp_path / "nothing", None, None)
