"""Which runs a site is made of."""

import shutil

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.site.sources import find_sources, load, plan
from gilscope.toolkit.store import load_run
from tests.report.hosts.made_up import write_fleet
from tests.site.made import EXAMPLE, copied_run
from tests.store.test_shared_values import part_of
from tests.test_store import write

pytestmark = pytest.mark.newest


def test_runs_below_a_folder_are_found_each_once():
    found = find_sources([str(EXAMPLE), str(EXAMPLE / "first-look")])
    assert found[0].path == EXAMPLE
    assert sorted(each.path for each in found) == sorted(file.parent for file in EXAMPLE.rglob("run.json"))
    assert len(found) >= 16


def test_machine_has_the_name_that_it_is_given():
    (found,) = find_sources([f"my laptop={EXAMPLE / 'own-function'}"])
    assert (found.host, found.path) == ("my laptop", EXAMPLE / "own-function")


def test_machine_without_a_name_is_called_what_it_is():
    (planned,) = plan(find_sources([str(EXAMPLE / "own-function")]), [])
    assert planned.host == "AMD EPYC, 2 cores"


def test_hosts_of_a_fleet_are_machines_of_their_own_however_alike_they_are(tmp_path):
    results = tmp_path / "results"
    write_fleet(results, names=("host-3", "host-4"))
    assert [each.host for each in plan(find_sources([str(results)]), [])] == [
        "host-3, Made-up CPU, 4 cores", "host-4, Made-up CPU, 4 cores"]
    assert [each.host for each in plan(find_sources([f"cluster={results}"]), [])] == [
        "cluster, host-3", "cluster, host-4"]


@pytest.mark.parametrize(("text", "said"), [
    ("nowhere", "there is no folder and no run 'nowhere'"), ("=results", "has no name before '='"),
    ("laptop=nowhere", "there is no folder and no run 'nowhere'"), ("fleet.json", "fleet.json is a file: name"),
])
def test_what_is_not_there_is_said(text, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.json").write_text("{}")
    with pytest.raises(ToolkitError, match=said):
        find_sources([text])


def test_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ToolkitError, match="holds no run"):
        find_sources([str(tmp_path)])


def test_runs_of_one_label_have_pages_of_their_own(tmp_path):
    for seed, name in enumerate(("a", "b")):
        copied_run(EXAMPLE / "own-function", tmp_path / name / "own-function", seed)
    ids = [planned.id for planned in plan(find_sources([str(tmp_path)]), [])]
    assert ids == ["own-function", "own-function--2"]


def test_files_of_a_copy_are_named_as_its_pages_name_it(tmp_path):
    copied_run(EXAMPLE / "own-function", tmp_path / "renamed", 1)
    for each in plan(find_sources([str(tmp_path), str(EXAMPLE / "experiments" / "convoy")]), []):
        run = load(each)[0].run
        assert (each.id, run.label) in {
            ("renamed", "renamed"), ("example-experiments-convoy", "example/experiments/convoy")}


def test_copy_of_a_run_is_taken_once_and_said(tmp_path):
    for name in ("a", "b"):
        shutil.copytree(EXAMPLE / "own-function", tmp_path / name)
    said = []
    (planned,) = plan(find_sources([f"one={tmp_path / 'a'}", f"two={tmp_path / 'b'}"]), [], said.append)
    assert planned.host == "one"
    assert said == [f"{tmp_path / 'b'} is a copy or a part of the run in {tmp_path / 'a'}, and is left out"]


@pytest.mark.parametrize(("part", "whole"), [("a", "b"), ("b", "a")])   # sources come in this order
def test_part_of_a_run_is_left_out_and_said(part, whole, tmp_path):
    run = load_run(EXAMPLE / "own-function")
    write(part_of(run, 3), tmp_path, part, tmp_path)
    write(run, tmp_path, whole, tmp_path)
    said = []
    (planned,) = plan(find_sources([str(tmp_path)]), [], said.append)
    assert planned.path == tmp_path / whole
    (line,) = said
    assert line == f"{tmp_path / part} is a copy or a part of the run in {tmp_path / whole}, and is left out"


def test_nothing_private_is_known_of_a_run():
    (planned,) = plan(find_sources([str(EXAMPLE / "own-function")]), [])
    known, _ = load(planned)
    assert known.run.machine.hostname == ""
    assert known.run.measurements == ()
