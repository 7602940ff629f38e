"""Runs of fleets on a site: each host is a machine, and one page has them side by side."""

import dataclasses
import json
import re

import pytest

from gilscope.toolkit.commands.fleet.reports import HostRuns
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.report.wording import ratio_number
from gilscope.toolkit.site.pages.fleets import fleet_values
from gilscope.toolkit.site.sources import find_sources, fleet_machines, load, plan
from gilscope.toolkit.store import fleet_text, read_fleet, read_header
from tests.report.hosts.made_up import write_fleet
from tests.site.made import EXAMPLE, broken_links, pages_of
from tests.site.test_making import made

pytestmark = pytest.mark.newest


def known(*asked):
    return [load(each)[0] for each in plan(find_sources([str(each) for each in asked]), [])]


def test_site_has_a_page_with_all_hosts_side_by_side(tmp_path):
    write_fleet(tmp_path / "results")
    out = tmp_path / "site"
    assert made(out, tmp_path / "results") == []
    assert broken_links(out) == []
    pages = pages_of(out)
    text = pages["fleet-night.html"].text
    assert "hosts agree on 4 and differ on 3" in text
    assert "host-2" in text
    assert "fleet-night.html" in pages["index.html"].links()
    links = set(pages["fleet-night.html"].links())
    assert {path.relative_to(out).as_posix() for path in out.glob("data/*/3*.json")} <= links
    assert {path.name for path in out.glob("run-*.html")} <= links
    assert not any("secret-host" in page.text for page in pages.values())


def test_ratio_of_a_host_is_that_of_its_report(tmp_path):
    write_fleet(tmp_path / "results")
    (found,) = fleet_values(known(tmp_path / "results"), {})
    table = next(each for each in found["document"]
                 if each["kind"] == "table" and any(row[2]["text"] == "free-threaded" for row in each["rows"]))
    row = next(row for row in table["rows"] if row[2]["text"] == "free-threaded")
    # Hosts gain 1.9 times 1, 0.97, 1.05 and 1.01.
    assert [each["sort"] for each in row[4:]] == pytest.approx([1.9, 1.9 * 0.97, 1.9 * 1.05, 1.9 * 1.01], rel=0.02)
    assert all(each["text"].startswith(ratio_number(each["sort"])) for each in row[4:])


def on_machines(folder, numbers):
    """Say on which machine each host of a fleet is, as its client does."""
    fleet = read_fleet(folder)
    hosts = [dataclasses.replace(host, machine=number) for host, number in zip(fleet.hosts, numbers, strict=True)]
    (folder / "fleet.json").write_text(fleet_text(dataclasses.replace(fleet, hosts=tuple(hosts))))
    for header in folder.glob("*/run.json"):   # as published
        values = json.loads(header.read_text())
        header.write_text(json.dumps(values | {"machine": values["machine"] | {"hostname": ""}}))


def test_hosts_on_one_machine_are_one_machine(tmp_path):
    on_machines(write_fleet(tmp_path / "results", names=("host-1", "host-2", "host-4")), (0, 0, 1))
    runs = known(tmp_path / "results")
    assert {each.run.label: each.host.partition(", ")[0] for each in runs} == {
        "night/host-1+host-2": "host-1+host-2", "night/host-4": "host-4"}
    (found,) = fleet_values(runs, {})
    tables = [each for each in found["document"] if each["kind"] == "table"]
    hosts = next(each for each in tables if each["title"].startswith("Speed-up"))
    assert [column["title"] for column in hosts["columns"]][4:] == ["host-1+host-2", "host-4"]


def test_fleet_on_one_machine_has_no_page_and_no_machine_of_its_own(tmp_path):
    on_machines(write_fleet(tmp_path / "results", names=("host-3", "host-4")), (0, 0))
    runs = known(tmp_path / "results", EXAMPLE / "own-function")
    assert fleet_values(runs, {}) == []
    assert len({each.host for each in runs}) == len(runs) == 2
    assert not any(each.host.startswith("host") for each in runs)


def test_hosts_on_one_machine_are_one_run_with_the_rounds_of_both(tmp_path):
    folder = write_fleet(tmp_path / "results", names=("host-3", "host-4"))
    on_machines(folder, (0, 0))
    (run,) = [each.run for each in known(tmp_path / "results")]
    rounds = [read_header(folder / name).rounds_done for name in ("host-3", "host-4")]
    assert (run.label, run.rounds_done) == ("night", sum(rounds))
    assert "host-3 and host-4 are one machine" in run.notes[0].text
    out = tmp_path / "site"
    assert made(out, tmp_path / "results") == []
    assert broken_links(out) == []
    pages = pages_of(out)
    assert [name for name in pages if name.startswith(("run-", "fleet-"))] == ["run-night.html"]
    for name in ("index.html", "run-night.html"):
        assert "host-3 and host-4 are one machine" in pages[name].text, name
    links = {link for link in pages["run-night.html"].links() if link.startswith("data/")}
    assert links == {f"data/night/{host}/{build}.json" for host in ("host-3", "host-4") for build in ("3.14", "3.14t")}
    line = next(each for each in re.findall("gilscope run [^\n]*", pages["run-night.html"].text) if "--fleet" in each)
    assert rounds[0] == rounds[1]
    assert line.endswith(f" --rounds {rounds[0]} --fleet local:2"), "each host had an order of its own"
    assert load_merged(out / "data" / "night").rounds_done == sum(rounds), "`gilscope report` reads the files"


def load_merged(folder):
    return HostRuns.of_fleet(folder).merged()


def test_host_that_cannot_be_read_is_left_out_and_said(tmp_path):
    folder = write_fleet(tmp_path / "results", names=("host-3", "host-4"))
    on_machines(folder, (0, 0))
    (folder / "host-4" / "3.14.json").write_text("{")
    out = tmp_path / "site"
    (problem,) = made(out, tmp_path / "results")
    assert "host-4" in problem
    assert "host-4 cannot be read, and is left out" in pages_of(out)["run-night.html"].text
    for name in ("host-3", "host-4"):
        (folder / name / "3.14.json").write_text("{")
    (planned,) = plan(find_sources([str(folder)]), [])
    with pytest.raises(BadFileError, match=r"host-3.*host-4"):
        load(planned)


def test_hosts_are_one_machine_only_where_that_is_stored(tmp_path):
    folder = write_fleet(tmp_path / "results", names=("host-1", "host-2"))
    assert len(fleet_machines(folder)) == 2
    on_machines(folder, (7, 7))
    assert len(fleet_machines(folder)) == 1


def test_one_host_and_runs_of_no_fleet_have_none(tmp_path):
    write_fleet(tmp_path / "one", names=("host-1",))
    assert fleet_values(known(tmp_path / "one"), {}) == []
    assert fleet_values(known(EXAMPLE / "own-function", EXAMPLE / "second-worker"), {}) == []


def test_fleets_of_one_label_have_pages_of_their_own(tmp_path):
    for folder in ("here", "there"):
        write_fleet(tmp_path / folder)
    for header in (tmp_path / "there").rglob("run.json"):
        header.write_text(json.dumps(json.loads(header.read_text()) | {"seed": 99}))
    found = fleet_values(known(f"here={tmp_path / 'here'}", f"there={tmp_path / 'there'}"), {})
    assert [each["page"] for each in found] == ["fleet-night.html", "fleet-night--2.html"]
