"""Runs of fleets on a site: each host is a machine, and one page says what they say together."""

import pytest

from gilscope.toolkit.report.wording import ratio_number
from gilscope.toolkit.site.pages.fleets import fleet_values
from gilscope.toolkit.site.sources import find_sources, load, plan
from tests.report.hosts.made_up import write_fleet
from tests.site.made import EXAMPLE, broken_links, pages_of
from tests.site.test_making import made

pytestmark = pytest.mark.newest


def known(*asked):
    return [load(each)[0] for each in plan(find_sources([str(each) for each in asked]), [])]


def test_site_has_a_page_of_what_all_hosts_say_together(tmp_path):
    write_fleet(tmp_path / "results")
    out = tmp_path / "site"
    assert made(out, tmp_path / "results") == []
    assert broken_links(out) == []
    pages = pages_of(out)
    text = pages["fleet-night.html"].text
    assert "random effects" in text
    assert "host-2" in text
    for name in ("index.html", "machines.html"):
        assert "fleet-night.html" in pages[name].links(), name
    assert pages["fleet-night.html"].text.count("gilscope run ") == len(list(out.glob("run-*.html")))
    links = set(pages["fleet-night.html"].links())
    assert {path.relative_to(out).as_posix() for path in out.glob("data/*/3*.json")} <= links
    assert {path.name for path in out.glob("run-*.html")} <= links
    assert not any("secret-host" in page.text for page in pages.values())


def test_ratio_over_hosts_is_that_of_the_report(tmp_path):
    write_fleet(tmp_path / "results")
    (found,) = fleet_values(known(tmp_path / "results"), {})
    table = next(each for each in found["document"]
                 if each["kind"] == "table" and any(row[0]["text"] == "free-threaded" for row in each["rows"]))
    row = next(row for row in table["rows"] if row[0]["text"] == "free-threaded")
    together = row[2]
    # Hosts gain 1.9 times 1, 0.97, 1.05 and 1.01.
    assert together["sort"] == pytest.approx(1.9 * (1 * 0.97 * 1.05 * 1.01) ** 0.25, rel=0.01)
    assert together["text"].startswith(ratio_number(together["sort"]))


def test_one_host_and_runs_of_no_fleet_have_none(tmp_path):
    write_fleet(tmp_path / "one", names=("host-1",))
    assert fleet_values(known(tmp_path / "one"), {}) == []
    assert fleet_values(known(EXAMPLE / "own-function", EXAMPLE / "second-worker"), {}) == []


def test_fleets_of_one_label_have_pages_of_their_own(tmp_path):
    for folder in ("here", "there"):
        write_fleet(tmp_path / folder, factor=1.1 if folder == "there" else 1.0)
    found = fleet_values(known(f"here={tmp_path / 'here'}", f"there={tmp_path / 'there'}"), {})
    assert [each["page"] for each in found] == ["fleet-night.html", "fleet-night--2.html"]
