"""The command that a page gives plans what was asked for."""

import argparse
import dataclasses
import shlex
from dataclasses import replace

import pytest

from gilscope import __version__
from gilscope.toolkit.commands.run.command import add_parser
from gilscope.toolkit.commands.run.request import make_selection, make_settings
from gilscope.toolkit.site.how_to_repeat import citation, command, site_citation
from gilscope.toolkit.store import read_header
from tests.fakes import make_build, make_run
from tests.site.made import EXAMPLE

pytestmark = pytest.mark.newest


def parsed(line):
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(shlex.split(line)[1:])


@pytest.mark.parametrize("asked", [
    "--quick", "--quick --rounds 5", "--quick --budget 2m", "--quick --models threads", "--rigorous", "--budget 5m", "",
    "--budget 5m --rounds 7", "--resolution 2%", "--quick --resolution 1%", "--workers 1,2 --rounds 4",
    "--phases both", "--phases startup", "--size large", "--timeout 5m", "--task-length 1ms,10ms"])
def test_command_plans_what_was_asked_for(asked):
    args = parsed(f"gilscope run primes sleep --seed 7 {asked}")
    settings, selection = make_settings(args), make_selection(args)
    options = {"settings": dataclasses.asdict(settings), "selection": dataclasses.asdict(selection)}
    again = parsed(command(replace(make_run(), options=options, seed=7, rounds_planned=settings.rounds)))
    assert make_settings(again) == settings
    assert make_selection(again) == selection


@pytest.mark.parametrize("asked", ["--quick", "--quick --models threads", "--rigorous", ""])
def test_cells_stay_the_same_when_the_budget_has_room_for_one_value(asked):
    args = parsed(f"gilscope run m:work --seed 7 --budget 2m {asked}")
    settings, selection = make_settings(args), make_selection(args)
    fitted = dataclasses.replace(settings, values=1)      # as `fit_budget` does
    options = {"settings": dataclasses.asdict(fitted), "selection": dataclasses.asdict(selection)}
    again = parsed(command(replace(make_run(), options=options, seed=7, rounds_planned=settings.rounds)))
    assert make_settings(again) == settings
    assert make_selection(again) == selection


def test_builds_that_were_given_by_path_have_a_place_for_it():
    builds = (make_build("3.14t", executable="/srv/py/bin/python3.14t"), make_build("3.13", source="gilscope"))
    found = parsed(command(replace(make_run(), builds=builds)))
    assert found.builds == "3.14t,3.13"
    assert found.build == ["3.14t=<build>/bin/python3.14t"]


@pytest.mark.parametrize("asked", [
    "--payload 1000", "--payload 1000 --tasks 8", "--payloads m:p --check m:c --async-form m:a --kind io"])
def test_command_repeats_the_users_function(asked):
    args = parsed(f"gilscope run m:work --seed 7 {asked}")
    options = {"settings": dataclasses.asdict(make_settings(args)),
               "selection": dataclasses.asdict(make_selection(args))}
    again = parsed(command(replace(make_run(), options=options, seed=7)))
    assert make_selection(again).user == make_selection(args).user


def test_site_is_cited_as_a_whole():
    runs = [replace(make_run(), started=f"2026-11-0{day}T10:00:00+00:00") for day in (1, 3)]
    found = site_citation("50 % of_it", runs, {"address": "https://example.org/x/"})
    assert found == (f'"50 % of_it": 2 runs of gilscope {__version__}, measured 2026-11-01 to 2026-11-03. '
                             "https://example.org/x/")
    assert "1 run of gilscope" in site_citation("Mine", runs[:1], {})


def test_citations_name_who_publishes_and_where():
    run, made = make_run(), {"by": "The R&D Group", "address": "https://example.org/x", "source": "https://example.org/s"}
    for found, address in ((citation(run, made, "run-x.html"), "https://example.org/x/run-x.html"),
                           (site_citation("Mine", [run], made), "https://example.org/x")):
        assert found.startswith("The R&D Group: ")
        assert found.endswith(f". {address}")
        assert f"gilscope {__version__} (https://example.org/s)" in found
    assert citation(run, {}).endswith(" cores.")


def test_command_of_an_experiment_has_its_budget():
    line = command(read_header(EXAMPLE / "experiments" / "countdown"))
    assert "--quick" in line
    assert "--rounds 5 --budget 30s" in line


def test_command_measures_as_many_sessions():
    args = parsed("gilscope run primes --seed 7 --sessions 3 --every 2h")
    options = {"settings": dataclasses.asdict(make_settings(args)),
               "selection": dataclasses.asdict(make_selection(args)), "sessions": args.sessions, "every": args.every}
    again = parsed(command(replace(make_run(), options=options, seed=7)))
    assert (again.sessions, again.every) == (3, 7200.0)
    # Of sessions that were added later, nobody said when.
    added = parsed(command(replace(make_run(), options=options | {"every": None}, seed=7)))
    assert (added.sessions, added.every) == (None, None)
