"""The answers of `gilscope scale` on a site: which files are taken, and what their pages say."""

import json
import re
from dataclasses import replace

import pytest

from gilscope.toolkit.cli import main
from gilscope.toolkit.commands.site import _about
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.report.document import Lines
from gilscope.toolkit.scale.judgement import Judgement, Obstacle, ScalingVerdict
from gilscope.toolkit.scale.report import answer_document, answer_summary
from gilscope.toolkit.scale.scaling_values import answer_values, read_answer
from gilscope.toolkit.scale.zygote_process import CodePlace
from gilscope.toolkit.site.answer_files import find_answers
from gilscope.toolkit.site.making import SiteRequest, make_site
from gilscope.toolkit.site.saved_answers import saved_answers
from gilscope.toolkit.site.sources import find_sources, machine_name
from tests.commands.test_scale import check_schema
from tests.scale.answers import make_answer, of_function, slower_investigation
from tests.scale.test_values import ANSWERS, FOUND
from tests.site.made import EXAMPLE, KINDS, broken_links, pages_of

pytestmark = pytest.mark.newest

SCALES = slower_investigation(
    objects=(), explained=None, without=None,
    judgement=Judgement(verdict=ScalingVerdict.SCALES, obstacle=Obstacle.NONE))
ANSWER = make_answer(of_function(FOUND), of_function(SCALES, label="3.15t", version="3.15.0"))


def write(path, answer=ANSWER):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(answer_values(answer), indent=1))
    return path


def site_of(out, *named, **changes):
    texts = [str(each) for each in named]
    answers = find_answers(texts)
    return make_site(SiteRequest(
        sources=find_sources(texts, {each.named for each in answers}), answers=answers, title="Results", kinds=KINDS,
        describe=_about, **changes), out)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of a run, of a function on two builds and of a module."""
    folder = tmp_path_factory.mktemp("scale")
    write(folder / "results" / "function.json")
    write(folder / "results" / "deeper" / "module.json", ANSWERS["module"])
    out = folder / "site"
    assert site_of(out, folder / "results", EXAMPLE / "own-function") == []
    return out


def words(text):
    return " ".join(text.replace("`", "").split())


def test_home_leads_to_the_answers_and_every_link_resolves(site):
    assert broken_links(site) == []
    pages = pages_of(site)
    assert {name for name in pages if name.startswith("answer")} == {"answer-app-work.html", "answer-app.html"}
    assert {"answer-app-work.html", "answer-app.html"} <= set(pages["index.html"].links())


@pytest.mark.parametrize(("page", "answer"), [("answer-app-work.html", ANSWER), ("answer-app.html", ANSWERS["module"])])
def test_page_of_an_answer_says_all_that_its_report_says(site, page, answer):
    text = words(pages_of(site)[page].text)
    for section in answer_document(answer).sections:
        for sentence in section.items if isinstance(section, Lines) else ():
            assert words(sentence) in text
    assert answer.command in text
    assert answer_summary(answer)[0] in text.partition(f"2026-11-27; {machine_name(answer.machine)}")[0]


def test_page_has_objects_lines_loss_repair_gain_and_the_build_that_cures_it(site):
    text = words(pages_of(site)["answer-app-work.html"].text)
    for said in ("0.50 [0.40, 0.60]", "1.80 [1.70, 1.90]",
                 "reference counts: app.PRICES (list), used at app.py:7 and app.py:9",
                 "all of the loss disappears", "Give each thread a copy of its own",
                 "2.25 times as fast as without: they reached 0.90 [0.80, 1.00] of the ceiling, and 0.40 without one",
                 "3.15t may be a repair, too"):
        assert said in text, said


def test_home_has_the_answers_in_short(site):
    text = words(pages_of(site)["index.html"].text)
    for answer in (ANSWER, ANSWERS["module"]):
        assert f"{answer.subject}: {words(' '.join(answer_summary(answer)))}" in text


def test_values_of_an_answer_are_published_without_folders_and_fit_the_schema(tmp_path):
    place = CodePlace(file="/srv/ann/shop/cart.py", line=7, function="add")
    found = replace(FOUND, objects=(replace(FOUND.objects[0], places=(place,)),))
    write(tmp_path / "in" / "a.json",
          make_answer(of_function(found), command="gilscope scale a:f --path /srv/ann/shop"))
    assert site_of(tmp_path / "site", tmp_path / "in") == []
    values = json.loads((tmp_path / "site" / "data" / "answers" / "app-work.json").read_text())
    check_schema(values)
    assert values["builds"][0]["callables"][0]["found"]["objects"][0]["places"][0]["file"] == "<folder>/cart.py"
    assert "srv" not in json.dumps(values)
    assert read_answer(values).subject == "app:work"
    page = pages_of(tmp_path / "site")["answer-app-work.html"]
    assert "used at <folder>/cart.py:7" in page.text
    assert "data/answers/app-work.json" in page.links()


def test_answers_alone_make_a_site_without_the_pages_of_runs(tmp_path):
    out = tmp_path / "site"
    assert site_of(out, write(tmp_path / "one.json")) == []
    assert broken_links(out) == []
    pages = pages_of(out)
    assert set(pages) == {"index.html", "answer-app-work.html"}
    text = words(pages["index.html"].text)
    assert "1 answer of gilscope" in text
    assert "All runs" not in text


def test_site_of_runs_alone_has_no_page_of_answers(tmp_path):
    assert site_of(tmp_path / "site", EXAMPLE / "own-function") == []
    pages = pages_of(tmp_path / "site")
    assert not any(name.startswith("answer") for name in pages)


def test_copy_of_an_answer_is_taken_once_and_said_and_so_is_that_in_a_site(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "in" / f"{name}.json")
    said = []
    assert len(saved_answers(find_answers([str(tmp_path / "in")]), [], said.append)) == 1
    first, second = (tmp_path / "in" / f"{name}.json" for name in ("a", "b"))
    assert said == [f"{second} is a copy of the answer in {first}, and is taken once"]
    assert site_of(tmp_path / "in" / "site", tmp_path / "in") == []
    assert len(saved_answers(find_answers([str(tmp_path / "in")]), [])) == 1


@pytest.mark.parametrize(("change", "said"), [
    ({"schema": "gilscope/scale/1"}, r"bad\.json is not of the schema gilscope/scale/2"),
    ({"threads": "two"}, r"bad\.json is damaged, edited, or .*threads is 'two'"),
])
def test_answer_that_cannot_be_read_is_left_out_and_said(tmp_path, change, said):
    write(tmp_path / "in" / "good.json")
    (tmp_path / "in" / "bad.json").write_text(json.dumps(answer_values(ANSWER) | change, indent=1))
    (problem,) = site_of(tmp_path / "site", tmp_path / "in")
    assert re.search(said, problem)
    assert "1 answer could not be read" in pages_of(tmp_path / "site")["index.html"].text


def test_answer_that_is_cut_off_is_said(tmp_path):
    path = write(tmp_path / "a.json")
    path.write_text(path.read_text()[:1000])
    with pytest.raises(ToolkitError, match=r"nothing could be read: .*a\.json is cut off or not JSON"):
        site_of(tmp_path / "site", path)


def test_other_json_is_no_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text('{"schema": "gilscope/run/1"}')
    assert find_answers([str(tmp_path)]) == find_answers(["other.json"]) == []
    with pytest.raises(ToolkitError, match=r"other\.json is a file: name .* `--json` of scale, race"):
        find_sources(["other.json"])


def test_answer_that_was_written_in_another_form_is_taken_if_it_is_named(tmp_path):
    path = tmp_path / "sorted.json"
    path.write_text(json.dumps(answer_values(ANSWER), sort_keys=True, separators=(",", ":")))
    (found,) = saved_answers(find_answers([str(path)]), [])
    assert found.title == "app:work"


def test_command_takes_answers_from_the_results_of_the_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GILSCOPE_RESULTS", raising=False)
    write(tmp_path / ".gilscope-results" / "scale.json")
    assert main(["site", "--out", "site"]) == 0, capsys.readouterr().err
    assert (tmp_path / "site" / "answer-app-work.html").is_file()


def test_site_does_not_name_who_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("USER", "Annabel")
    write(tmp_path / "in" / "a.json", replace(ANSWER, subject="annabel:work"))
    assert main(["site", str(tmp_path / "in"), "--out", str(tmp_path / "site")]) == 2
    assert "the name of the user, 'annabel'" in capsys.readouterr().err
