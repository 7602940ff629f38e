"""Saved answers of `race`, `gil`, `scale`, `doctor` and `evaluate` on a site: each has a page."""

import json

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.evaluate.views import doctor
from gilscope.toolkit.evaluate.views.json_document import plain as evaluation_values
from gilscope.toolkit.gil.as_json import values
from gilscope.toolkit.gil.diagnosis import diagnose
from gilscope.toolkit.gil.recorder import Recording
from gilscope.toolkit.race.report import json_
from tests.evaluate.made_up import evaluation, finding, report
from tests.gil.recorded import make_process
from tests.race.fakes.report import make_report
from tests.site.made import broken_links, pages_of
from tests.site.test_scale_answers import site_of, write

pytestmark = pytest.mark.newest


def documents():
    recording = Recording(processes=(make_process(),), ended=0, wall=1.0, cpu=1.5)
    return {"race": json_.plain(make_report()), "gil": values(diagnose(["spin.py"], recording)),
            "doctor": doctor.plain([report(finding())]), "evaluate": evaluation_values(evaluation())}


def write_all(folder, found):
    folder.mkdir()
    for kind, document in found.items():
        (folder / f"{kind}.json").write_text(json.dumps(document, indent=1))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of one answer of each command, a copy, and an answer of `gilscope scale`."""
    folder = tmp_path_factory.mktemp("answers")
    write_all(folder / "in", found := documents())
    (folder / "in" / "copy.json").write_text(json.dumps(found["gil"]))
    write(folder / "in" / "scale.json")
    assert site_of(folder / "site", folder / "in") == []
    return folder / "site"


def test_home_links_each_answer_once(site):
    assert broken_links(site) == []
    links = pages_of(site)["index.html"].links()
    for page in ("answer-gil-spin.py.html", "answer-doctor-lxml.html", "answer-evaluate-myapp.html",
                 "answer-1-data-race-and-1-atomicity-violation-in-main.py.html", "answer-app-work.html"):
        assert links.count(page) == 1, page
    assert len(list(site.glob("answer-*.html"))) == 5


@pytest.mark.parametrize(("page", "said"), [
    ("gil-spin.py", documents()["gil"]["answer"]), ("doctor-lxml", ["3.14t", "nothing in the way"]),
    ("evaluate-myapp", ["BLOCKED", *documents()["evaluate"]["next_steps"]]),
    ("1-data-race-and-1-atomicity-violation-in-main.py", ["Account.balance", "bank.py:14", "Bank.lock"]),
])
def test_page_has_the_answer_and_leads_to_its_values(site, page, said):
    found = pages_of(site)[f"answer-{page}.html"]
    assert [text for text in said if text not in found.text] == []
    (data,) = {link for link in found.links() if link.startswith("data/")}
    assert json.loads((site / data).read_text())["schema"].startswith("gilscope/")
    assert "/home/" not in found.text + (site / data).read_text()


@pytest.mark.parametrize(("kind", "change", "said"), [
    ("gil", {"schema": "gilscope/gil/1"}, "is not of the schema gilscope/gil/2"),
    ("gil", {"threads": 7}, "is damaged"), ("race", {"races": [{}]}, "is damaged"),
    ("doctor", {"builds": None}, "is damaged"), ("evaluate", {"conclusions": [{}]}, "is damaged")])
def test_answer_that_cannot_be_read_is_left_out_and_said(tmp_path, kind, change, said):
    found = documents()
    write_all(tmp_path / "in", found | {kind: found[kind] | change})
    (problem,) = site_of(tmp_path / "site", tmp_path / "in")
    assert f"{kind}.json {said}" in problem
    assert "1 answer could not be read" in pages_of(tmp_path / "site")["index.html"].text


def test_answer_that_cannot_be_read_makes_no_site_alone(tmp_path):
    write_all(tmp_path / "in", {"gil": {"schema": "gilscope/gil/9"}})
    with pytest.raises(ToolkitError, match="nothing could be read"):
        site_of(tmp_path / "site", tmp_path / "in")
