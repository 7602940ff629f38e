"""Every ratio on each host, and on which hosts a word holds."""

import dataclasses
import re

import pytest

from gilscope.toolkit.report import markdown, terminal
from gilscope.toolkit.report.document import Banner, Table
from gilscope.toolkit.report.hosts.agreement import (
    _verdicts,
    agreement,
    build_contrasts,
    hosts_speedups,
    measured_host,
)
from gilscope.toolkit.report.hosts.as_json import hosts_values
from gilscope.toolkit.report.hosts.document import hosts_document
from gilscope.toolkit.report.hosts.wording import agreement_text, names_text
from gilscope.toolkit.report.provenance import WITHOUT_PGO
from gilscope.toolkit.report.table.contrast import compare_builds
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.wording import entry_text
from tests.conformance.builds import ROOT
from tests.fakes import RunMaker, make_build
from tests.report.hosts.made_up import HOSTS, STATES, cell, comparison, host_run
from tests.report.test_golden import GOLDEN, check

pytestmark = pytest.mark.newest


@pytest.fixture(scope="module")
def hosts():
    return [measured_host(name, host_run(name)) for name in HOSTS]


def banners(document):
    """Return the warnings of a document but that none of the made-up builds has PGO."""
    return [each.text for each in document.sections if isinstance(each, Banner) and each.text != WITHOUT_PGO]


def rows_of(hosts, build="3.14"):
    return {each.sample.runner: each for each in hosts_speedups(hosts) if each.sample.build == build}


def test_host_says_of_itself_what_its_own_report_says(hosts):
    (table,) = build_tables(host_run("host-2"))
    own = {result.cell: result.speedup for row in table.rows for result in row.results if result.speedup}
    found = {each.sample: each.by["host-2"] for each in hosts_speedups(hosts)}
    assert found == own


def test_cell_that_a_host_lacks_says_why(hosts):
    over = rows_of(hosts)["subinterpreters"]
    assert list(over.by) == ["host-1", "host-2", "host-4"]
    assert over.lacking == {"host-3": "starved"}


def test_host_with_more_cores_has_more_workers():
    small, large = RunMaker(rounds=4), RunMaker(rounds=4, seed=2)
    for maker, counts in ((small, (2,)), (large, (2, 4))):
        maker.measure(cell("serial", 1, "3.14"), 1.0)
        for runner in ("threads", "subinterpreters"):
            for workers in counts:
                maker.measure(cell(runner, workers, "3.14"), 1.0 / workers)
    found = {"small": small.run(("3.14",)), "large": large.run(("3.14",))}
    ratios = hosts_speedups([measured_host(name, run) for name, run in found.items()])
    assert [(each.sample.runner, each.sample.workers, list(each.by)) for each in ratios] == [
        ("threads", 2, ["small", "large"]), ("threads", 4, ["large"]),
        ("subinterpreters", 2, ["small", "large"]), ("subinterpreters", 4, ["large"])]
    assert ratios[1].lacking == {"small": "not measured"}


def test_what_no_build_can_run_has_no_row(hosts):
    assert "free-threaded" not in rows_of(hosts)
    assert "free-threaded" in rows_of(hosts, "3.14t")


def test_word_that_changes_between_hosts_is_named(hosts):
    found = rows_of(hosts)["asyncio"].agreement
    assert (found.word, found.holds, found.others) == (
        "faster", ("host-1", "host-3", "host-4"), {"slower": ("host-2",)})
    assert found.changes


@pytest.mark.parametrize(("words", "word", "holds", "others", "changes"), [
    ({"a": "faster", "b": "faster"}, "faster", ("a", "b"), {}, False),
    ({"a": "cannot tell", "b": "cannot tell", "c": "same"}, "same", ("c",), {"cannot tell": ("a", "b")}, False),
    ({"a": "slower", "b": "same", "c": "same"}, "same", ("b", "c"), {"slower": ("a",)}, True),
    ({"a": "cannot tell", "b": "cannot tell", "c": "slower", "d": "same", "e": "same"}, "same", ("d", "e"),
     {"slower": ("c",), "cannot tell": ("a", "b")}, True),
    ({"a": "cannot tell"}, "cannot tell", ("a",), {}, False),
    ({}, "cannot tell", (), {}, False),
])
def test_agreement(words, word, holds, others, changes):
    found = agreement(words)
    assert (found.word, found.holds, found.others, found.changes, found.hosts) == (
        word, holds, others, changes, len(words))
    assert list(found.others) == list(others)   # "cannot tell" comes last


def test_small_difference_does_not_contradict_none():
    def found(*ratios):
        return agreement(_verdicts({f"host-{k}": comparison(ratio) for k, ratio in enumerate(ratios)}))

    assert (found(0.98, 1.0).word, found(0.98, 1.0).changes) == ("same", False)
    assert (found(0.98, 0.985).word, found(0.9, 1.0).changes) == ("slower", True)


def test_report(hosts):
    document = hosts_document("night", hosts, STATES)
    check("hosts-100.txt", terminal.render(document))
    check("hosts.md", markdown.render(document))


def test_table_explained_is_one_of_that_report():
    page = (ROOT / "docs" / "reading-a-table.md").read_text()
    blocks = re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (shown,) = [each for each in blocks if "host-1" in each]
    assert shown in (GOLDEN / "hosts-100.txt").read_text()


def test_many_hosts_have_no_column_each(hosts):
    many = [dataclasses.replace(hosts[k % 4], name=f"host-{k}") for k in range(200)]
    document = hosts_document("night", many)
    tables = [each for each in document.sections if isinstance(each, Table)]
    assert max(len(table.columns) for table in tables) < 10
    assert len(tables[0].rows) == 3   # hosts with the same machine share a row
    assert "150 hosts (host-0, host-2, host-3, ...)" in terminal.render(document, width=300)


def test_what_makes_hosts_unlike_is_said_first(hosts):
    other = host_run("host-2")
    other = dataclasses.replace(other, builds=(make_build("3.14", version="3.14.7"), other.builds[1]),
                                options={"selection": {"size": "large"}})
    found = hosts_document("night", [hosts[0], measured_host("host-2", other)], (*STATES[:2], STATES[4]))
    said = banners(found)
    assert said == [
        "host-5: lost, the connection was closed before its first round",
        "host-2: 3.14 is not the same everywhere: version: host-1 has 3.14.0, this one has 3.14.7",
        "not the same work (size) on host-1 and host-2"]


def test_hosts_with_the_same_difference_are_named_together(hosts):
    builds = (make_build("3.14", version="3.14.7"), make_build("3.14t", debug=True))
    others = [measured_host(name, dataclasses.replace(host_run(name), builds=(builds[0], build)))
              for name, build in (("host-2", builds[1]), ("host-3", hosts[0].run.builds[1]))]
    found = hosts_document("night", [hosts[0], *others])
    said = banners(found)
    assert said == [
        "host-2 and host-3: 3.14 is not the same everywhere: version: host-1 has 3.14.0, this one has 3.14.7",
        "host-2: 3.14t is not the same everywhere: debug checks: this one has it, host-1 does not"]


def test_what_every_run_says_first_is_said_once(hosts):
    noted, quiet = ([dataclasses.replace(host, cautions=texts) for host in hosts] for texts in (("odd builds",), ()))
    for asked, said in ((noted, "odd builds"), ([noted[0], quiet[1]], "host-1: odd builds")):
        found = hosts_document("night", asked)
        assert banners(found) == [said]


def test_footnotes_and_warnings_of_a_host_stand_in_the_report_over_hosts():
    """A slow process of one host, of a cell and of a baseline, and how its runs stopped."""
    slow = "the slowest process took 1.5 times the median"
    run, other = (flagged(host_run(name), names) for name, names in (
        ("host-1", {("threads", "3.14"), ("serial", "3.14t")}), ("host-4", ())))
    *others, last = run.measurements
    last = dataclasses.replace(last, observations=last.observations[:4])
    run = dataclasses.replace(run, looks=1, measurements=(*others, last))
    hosts = [measured_host("host-1", run), measured_host("host-4", other)]
    document = hosts_document("night", hosts)
    table = next(each for each in document.sections if isinstance(each, Table) and each.title.startswith("Speed-up"))
    said = {(row[1].value, row[2].value, host): [table.footnotes[mark - 1] for mark in entry.marks]
            for row in table.rows for host, entry in zip(("host-1", "host-4"), row[4:], strict=True)}
    assert said["3.14", "threads", "host-1"][0].startswith(slow)
    assert said["3.14", "subinterpreters", "host-1"] == []
    assert said["3.14t", "threads", "host-1"][0].startswith(f"the baseline: {slow}")
    assert not any(slow in text for (_, _, host), texts in said.items() if host == "host-4" for text in texts)
    text = terminal.render(document, width=200)
    assert "host-1: cells with a clear answer got fewer rounds than open ones: 4 to 8" in text
    assert "WARNING: these builds lack PGO" in text
    notes = hosts_values("night", hosts)["notes"]
    assert any(each.startswith("host-1: cells with a clear answer") for each in notes)
    assert any(each.startswith("these builds lack PGO") for each in notes)


def flagged(run, cells):
    """Return the run with a process of some cells that takes 40 % longer."""
    return dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=tuple(
            dataclasses.replace(one, wall=tuple(value * 1.5 for value in one.wall)) if one.round == 2 else one
            for one in each.observations))
        if (each.cell.runner, each.cell.build) in cells and not each.cell.twin else each for each in run.measurements))


def test_host_whose_values_are_gone_is_said(hosts):
    found = hosts_document("night", hosts[1:3], STATES[:3])
    (said,) = banners(found)
    assert said == "host-1: finished, and the values are gone or cannot be read"


@pytest.mark.parametrize(("rounds", "shown"), [(8, "none"), (1, "?")])
def test_nothing_that_gains_is_told_from_what_is_not_known(rounds, shown):
    hosts = []
    for seed in (1, 2):
        maker = RunMaker(rounds=rounds, seed=seed)
        maker.measure(cell("serial", 1, "3.14"), 1.0)
        maker.measure(cell("threads", 2, "3.14"), 1.0)
        hosts.append(measured_host(f"host-{seed}", maker.run(("3.14",))))
    table = next(section for section in hosts_document("two", hosts).sections
                 if isinstance(section, Table) and section.title.startswith("Speed-up"))
    assert [[entry_text(entry) for entry in row[-2:]] for row in table.rows] == [[shown, shown]]


def test_a_star_is_at_the_fastest_of_each_host(hosts):
    table = next(section for section in hosts_document("night", hosts).sections
                 if isinstance(section, Table) and section.title.startswith("Speed-up"))
    best = {entry_text(row[2]): [entry_text(each).endswith("*") for each in row[4:]]
            for row in table.rows if entry_text(row[1]) == "3.14"}
    for host, place in zip(hosts, range(len(hosts)), strict=True):
        (advice,) = (each for each in host.tables[0].advice if each.build == "3.14")
        assert {name for name, stars in best.items() if stars[place]} == {
            option.cell.runner for option in advice.options}


def test_one_host_shows_nothing_about_others(hosts):
    text = terminal.render(hosts_document("night", hosts[:1], STATES))
    assert "nothing shows whether any holds elsewhere" in text


def test_builds_of_a_fleet_are_compared_on_each_host(hosts):
    own = {name: compare_builds(host_run(name), "3.14", "3.14t") for name in HOSTS}
    (found,) = [each for each in build_contrasts(hosts) if each.sample.runner == "serial"]
    assert found.by == {
        name: next(each.comparison for each in own[name] if each.sample.runner == "serial") for name in HOSTS}
    assert found.agreement.word == "slower"


def test_build_that_a_host_lacks_is_a_footnote(hosts):
    gone = RunMaker(rounds=4, seed=9)
    gone.measure(cell("serial", 1, "3.14"), 1.0)
    gone.measure(cell("threads", 2, "3.14"), 0.5)
    gone.skip(cell("serial", 1, "3.14t"), "no module x")
    document = hosts_document("night", [hosts[0], measured_host("host-2", gone.run(("3.14", "3.14t")))])
    (table,) = [each for each in document.sections if isinstance(each, Table) and each.title.startswith("How many")]
    assert entry_text(table.rows[0][-1]) == "-¹"
    assert table.footnotes == ("3.14t: skipped: no module x",)


@pytest.mark.parametrize(("names", "text"), [
    (["a"], "a"), (["a", "b", "c"], "a, b and c"), ([f"h{k}" for k in range(9)], "9 hosts (h0, h1, h2, ...)")])
def test_names(names, text):
    assert names_text(names) == text


def test_one_sentence_says_whether_hosts_agree(hosts):
    said = agreement_text(hosts_speedups(hosts))
    assert said.startswith("Of 7 speed-ups on more than one host, hosts agree on 4 and differ on 3: asyncio (2 tasks "
                           "in flight) of primes on 3.14 is faster on host-1, host-3 and host-4 and slower on host-2;")
    assert agreement_text(hosts_speedups(hosts[2:])) == (
        "Of 6 speed-ups on more than one host, hosts agree on 6.")
