"""Whole sites: every page and link is there, nothing is asked for elsewhere, and what was there before is respected."""

import json
import os
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gilscope import __version__
from gilscope.toolkit.cli import main
from gilscope.toolkit.commands.site import _about, described_work
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.file_locks import try_lock
from gilscope.toolkit.site import making
from gilscope.toolkit.site.making import MARKER, SiteRequest, make_site
from gilscope.toolkit.site.sources import find_sources
from gilscope.workloads import catalog
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.site.made import EXAMPLE, KINDS, broken_links, copied_run, pages_of

pytestmark = pytest.mark.newest

MADE = {"by": "The Example Group", "command": "gilscope site --out x",
        "works": {"primes": described_work(catalog.find("primes"))}}


def made(out, *results, **changes):
    return make_site(SiteRequest(sources=find_sources([str(each) for each in results]), title="Results", kinds=KINDS,
                                 describe=_about, **changes), out)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of two runs of two machines and an experiment."""
    out = tmp_path_factory.mktemp("made") / "site"
    assert made(out, f"laptop={EXAMPLE / 'own-function'}", f"server={EXAMPLE / 'second-worker'}",
                EXAMPLE / "experiments" / "countdown", address="https://example.org/x", **MADE) == []
    return out


def test_every_page_says_who_publishes_it_and_what_made_it(site):
    for name, page in pages_of(site).items():
        assert "Published by The Example Group." in page.text, name
        assert f"Made by gilscope {__version__} with gilscope site --out x." in page.text, name


def test_page_of_a_run_has_what_a_workload_does_and_its_source(site):
    text = pages_of(site)["run-server-second-worker.html"].text
    assert "What it does: count primes by trial division" in text
    assert "def primes(" in text
    assert "def " not in pages_of(site)["run-laptop-own-function.html"].text, "a function of others"


def test_every_page_is_there(site):
    assert set(pages_of(site)) == {
        "index.html", "compare.html", "history.html", "history-mywork-perfect-numbers.html",
        "history-primes.html", "experiments.html", "run-laptop-own-function.html",
        "run-server-second-worker.html", "experiment-example-experiments-countdown.html"}


def test_page_says_what_each_number_is_and_that_ratios_are_taken_within_rounds(site):
    text = pages_of(site)["run-server-second-worker.html"].text
    for said in ("the median over processes", "pyperf show prints another number", "not the quotient of the two times",
                 "This needs at least 3 rounds"):
        assert said in text


def pictures_on(page):
    return [attrs["src"] for attrs in page.named("img") if attrs["src"].startswith("figures/")]


def test_figures_that_were_drawn_with_an_experiment_are_shown_though_their_values_are_not_published(tmp_path):
    out, said = tmp_path / "site", []
    made(out, EXAMPLE / "experiments" / "gil-trace", draw=lambda *_: [], say=said.append)
    (page,) = [page for name, page in pages_of(out).items() if name.startswith("experiment-")]
    assert [each.rpartition("/")[2] for each in pictures_on(page)] == ["gil-trace.svg", "gil-trace-parked.svg"]
    assert not said
    assert broken_links(out) == []


def test_figure_that_was_lost_costs_no_other_and_an_experiment_without_any_is_named(tmp_path):
    shutil.copytree(EXAMPLE / "experiments" / "gil-trace", tmp_path / "in" / "gil-trace")
    (tmp_path / "in" / "gil-trace" / "gil-trace.svg").unlink()
    said = []
    for name, left in (("one", ["gil-trace-parked.svg"]), ("none", [])):
        made(tmp_path / name, tmp_path / "in", draw=lambda *_: [], say=said.append)
        (page,) = [page for file, page in pages_of(tmp_path / name).items() if file.startswith("experiment-")]
        assert [each.rpartition("/")[2] for each in pictures_on(page)] == left
        assert bool(said) is not bool(left)
        (tmp_path / "in" / "gil-trace" / "gil-trace-parked.svg").unlink(missing_ok=True)
    assert "no figure, as none was drawn with it" in said[0]


def test_every_link_and_picture_resolves(site):
    assert broken_links(site) == []


def test_nothing_is_asked_for_elsewhere(site):
    for name, page in pages_of(site).items():
        assert not [link for link in page.links() if ":" in link or link.startswith("//")], name
        policy = next(each["content"] for each in page.named("meta") if "http-equiv" in each)
        assert "default-src 'none'" in policy
    style = (site / "assets/site.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style


def test_citations_of_all_pages_name_who_publishes(site):
    pages = {name: page.text for name, page in pages_of(site).items() if "Cite it: " in page.text}
    assert set(pages) == {"index.html", "run-laptop-own-function.html", "run-server-second-worker.html",
                          "experiment-example-experiments-countdown.html"}
    for name, text in pages.items():
        address = "https://example.org/x" + (f"/{name}" if name != "index.html" else "")
        assert re.search(rf"Cite it: The Example Group: .* {re.escape(address)}\n", text), name


def test_builds_are_compared_as_the_command_does_it(site, monkeypatch, capsys):
    monkeypatch.chdir(site)
    page = pages_of(site)["compare.html"]
    for run in ("server-second-worker", "laptop-own-function"):
        assert f"run-{run}.html" in page.links()
        assert main(["compare", f"data/{run}", "--builds", "3.14,3.14t", "--json"]) == 0
        ratios = [each["ratio"]["ratio"] for each in json.loads(capsys.readouterr().out)["cells"] if each["ratio"]]
        assert ratios
        assert all(f"{ratio:.2f}x" in page.text for ratio in ratios)


def test_page_of_a_run_has_one_command(site):
    page = (site / "run-server-second-worker.html").read_text(encoding="utf-8")
    assert [each.split()[:2] for each in re.findall(r"<pre><code>(g.*?)</code>", page)] == [["gilscope", "run"]]


def test_experiment_is_cited_by_the_name_of_its_page_and_its_data(site):
    page = pages_of(site)["experiment-example-experiments-countdown.html"]
    assert 'results "example/experiments/countdown"' in page.text
    assert "data/example-experiments-countdown/3.14.json" in page.links()


def test_places_in_the_source_are_links_where_its_address_is_given(site, tmp_path):
    where = re.compile(r"workloads/\w+\.py:\d+")
    page = pages_of(site)["run-server-second-worker.html"]
    place = where.search(page.text).group()
    address = "https://example.org/source"
    out = tmp_path / "site"
    assert made(out, f"server={EXAMPLE / 'second-worker'}", source_url=f"{address}/", **MADE) == []
    linked = {link for page in pages_of(out).values() for link in page.links() if ":" in link}
    file, line = place.split(":")
    assert linked == {f"{address}/{file}#L{line}", f"{address}/docs/measuring.md"}
    assert "def primes(" in (ROOT / file).read_text().splitlines()[int(line) - 1]
    assert (ROOT / "docs" / "measuring.md").is_file()


def test_every_page_has_one_main_heading_a_language_and_a_way_to_its_content(site):
    for name, page in pages_of(site).items():
        assert len(page.named("h1")) == 1, name
        assert page.named("html") == [{"lang": "en"}]
        assert {"class": "skip", "href": "#content"} in page.named("a")
        assert [attrs["id"] for attrs in page.named("main")] == ["content"]
        assert all("alt" in attrs for attrs in page.named("img")), name


def test_ids_are_unique(site):
    for name, page in pages_of(site).items():
        ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
        assert len(ids) == len(set(ids)), name


def test_each_row_leads_to_its_pyperf_file(site):
    page = pages_of(site)["run-server-second-worker.html"]
    files = {link for link in page.links() if link.startswith("data/")}
    assert files == {"data/server-second-worker/3.14.json", "data/server-second-worker/3.14t.json"}
    kept = json.loads((site / "data/server-second-worker/3.14t.json").read_text())
    assert kept["benchmarks"]


def test_run_page_says_how_to_get_it_again(site):
    text = pages_of(site)["run-server-second-worker.html"].text
    assert ("gilscope run primes --builds 3.14,3.14t --build '3.14=<build>/bin/python3.14' "
            "--build '3.14t=<build>/bin/python3.14t' --models threads,free-threaded,subinterpreters,"
            "processes-forkserver --workers 2 --size small --rounds 12 --seed 1769938935") in text


def test_badge_says_what_free_threads_gain(site):
    assert "3.14t: 1.7x with 2 threads" in (site / "badge.svg").read_text()
    assert "https://example.org/x/badge.svg" in pages_of(site)["index.html"].text


def test_home_tells_a_stranger_how_to_measure_his_own_code(site):
    assert "gilscope run MODULE:FUNCTION --payloads MODULE:NAME" in pages_of(site)["index.html"].text


def test_site_is_made_again_in_its_place_and_what_others_put_there_stays(tmp_path):
    out = tmp_path / "site"
    made(out, EXAMPLE / "own-function", EXAMPLE / "second-worker")
    (out / "CNAME").write_text("example.org\n")
    made(out, EXAMPLE / "own-function")
    assert (out / "CNAME").is_file()
    assert not (out / "run-second-worker.html").exists()
    assert not (out / "data/second-worker").exists()
    assert broken_links(out) == []
    assert [each.name for each in tmp_path.iterdir()] == ["site"], "nothing is left beside it"


@pytest.mark.parametrize("there", [True, False])
def test_first_page_is_opened_or_it_is_said_that_there_is_no_browser(tmp_path, monkeypatch, capsys, there):
    asked = []
    monkeypatch.setattr("webbrowser.open", lambda address: asked.append(address) or there)
    home = tmp_path / "site" / "index.html"
    assert main(["site", str(EXAMPLE / "own-function"), "--out", str(home.parent), "--open"]) == 0
    assert asked == [home.as_uri()]
    assert ("found no browser" in capsys.readouterr().err) is not there


def test_site_that_was_made_meanwhile_is_replaced_whole(tmp_path, monkeypatch):
    out, write = tmp_path / "site", making._write

    def write_while_another_is_made(*arguments):
        monkeypatch.setattr(making, "_write", write)
        problems = write(*arguments)
        made(out, EXAMPLE / "first-look")
        return problems

    monkeypatch.setattr(making, "_write", write_while_another_is_made)
    made(out, EXAMPLE / "own-function")
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert files == set(json.loads((out / MARKER).read_text())["files"])
    assert (out / "run-own-function.html").exists()


def test_site_waits_until_another_has_been_put_in_its_place(tmp_path):
    out, waits = tmp_path / "site", threading.Event()
    out.mkdir()
    with ThreadPoolExecutor(1) as threads:
        folder = os.open(out, os.O_RDONLY)
        assert try_lock(folder)
        try:
            making_it = threads.submit(
                made, out, EXAMPLE / "own-function", say=lambda said: waits.set() if "waiting" in said else None)
            assert waits.wait(PATIENCE)
            assert not [*out.iterdir()]
        finally:
            os.close(folder)
        assert making_it.result(PATIENCE) == []
    assert (out / "index.html").exists()


@pytest.mark.parametrize("content", [None, "{}", "[", '{"schema": "other/1", "files": []}'])
def test_folder_with_something_else_is_refused(tmp_path, content):
    out = tmp_path / "work"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    if content is not None:
        (out / MARKER).write_text(content)
    with pytest.raises(ToolkitError, match="no site of gilscope's"):
        made(out, EXAMPLE / "own-function")
    assert (out / "thesis.txt").read_text() == "mine"


def test_marker_of_others_removes_nothing_outside(tmp_path):
    out = tmp_path / "site"
    made(out, EXAMPLE / "own-function")
    marker = json.loads((out / MARKER).read_text())
    (tmp_path / "mine").write_text("mine")
    (out / MARKER).write_text(json.dumps(marker | {"files": ["../mine", str(tmp_path / "mine"), *marker["files"]]}))
    made(out, EXAMPLE / "own-function")
    assert (tmp_path / "mine").read_text() == "mine"


def test_run_that_cannot_be_read_is_left_out_and_said(tmp_path):
    shutil.copytree(EXAMPLE / "own-function", tmp_path / "in" / "good")
    copied_run(EXAMPLE / "own-function", tmp_path / "in" / "bad", 1)
    (tmp_path / "in" / "bad" / "3.14.json").write_text("{")
    problems = made(tmp_path / "site", tmp_path / "in")
    assert len(problems) == 1
    assert "bad" in problems[0]
    text = pages_of(tmp_path / "site")["index.html"].text
    assert "1 run could not be read and is left out." in text
    assert str(tmp_path) not in text


def test_site_of_experiments_alone_says_what_could_not_be_read(tmp_path):
    shutil.copytree(EXAMPLE / "own-function", tmp_path / "in" / "bad")
    (tmp_path / "in" / "bad" / "3.14.json").write_text("{")
    shutil.copytree(EXAMPLE / "experiments" / "countdown", tmp_path / "in" / "countdown")
    assert len(made(tmp_path / "site", tmp_path / "in")) == 1
    assert "1 run could not be read and is left out." in pages_of(tmp_path / "site")["index.html"].text


def test_nothing_is_made_where_no_run_can_be_read(tmp_path):
    shutil.copytree(EXAMPLE / "own-function", tmp_path / "bad")
    (tmp_path / "bad" / "3.14.json").write_text("{")
    with pytest.raises(ToolkitError, match="nothing could be read"):
        made(tmp_path / "site", tmp_path / "bad")
    assert not (tmp_path / "site").exists()


def test_same_results_make_the_same_site(site, tmp_path):
    made(tmp_path / "again", f"laptop={EXAMPLE / 'own-function'}", f"server={EXAMPLE / 'second-worker'}",
         EXAMPLE / "experiments" / "countdown", address="https://example.org/x", **MADE)
    for path in sorted(each for each in site.rglob("*") if each.is_file()):
        assert (tmp_path / "again" / path.relative_to(site)).read_bytes() == path.read_bytes(), path.name


@pytest.mark.slow
def test_site_of_the_examples_is_small(tmp_path):
    assert made(tmp_path / "site", EXAMPLE, processes=2) == []
    sizes = {path.relative_to(tmp_path / "site"): path.stat().st_size for path in (tmp_path / "site").rglob("*")
             if path.is_file()}
    assert sum(size for name, size in sizes.items() if name.parts[0] != "data") <= 1_700_000
    assert max(size for name, size in sizes.items() if name.suffix == ".html") <= 500_000
    assert broken_links(tmp_path / "site") == []
    assert len(list((tmp_path / "site").glob("experiment-*.html"))) == 12


@pytest.mark.slow
def test_several_processes_make_the_same_site(tmp_path):
    runs = [tmp_path / "in" / str(number) for number in range(5)]
    for seed, path in enumerate(runs):
        copied_run(EXAMPLE / "own-function", path, seed)
    made(tmp_path / "one", tmp_path / "in")
    made(tmp_path / "two", tmp_path / "in", processes=2)
    for path in sorted(each for each in (tmp_path / "one").rglob("*") if each.is_file()):
        assert (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes() == path.read_bytes(), path.name
