"""Reports in one file: what they show, that no text of others is more than text there, and that nothing private is."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from gilscope import __version__
from gilscope.toolkit import cli
from gilscope.toolkit.commands.output.pages import HtmlFile
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.race.report import json_
from gilscope.toolkit.race.report.model import Race, RaceReport
from gilscope.toolkit.race.terms import RaceKind
from gilscope.toolkit.redaction import PUBLIC, PrivateNames
from gilscope.toolkit.report.document import Document, Heading, Picture
from gilscope.toolkit.site.page_values import page_values
from gilscope.toolkit.site.single.page import single_page
from gilscope.toolkit.site.single.races import race_values
from gilscope.toolkit.site.single.verdicts import verdict_values
from gilscope.toolkit.site.single.waits import WIDTH, wait_values
from tests.faults.hostile_texts import BLANK, TEXTS, UNSEEN, filled
from tests.gil.recorded import make_process, make_thread
from tests.race.fakes.report import ROOT, make_access, make_report
from tests.site.made import Tags
from tests.site.pages import PAGES, doctor_page, evaluate_page, gil_page, race_page, render

pytestmark = [pytest.mark.newest]

CLOSED = {(Race, "kind"): RaceKind.LOST_UPDATE}   # one of a few words, which are ours
IN_HTML = {
    "an attribute's end": '" onmouseover=alert(1) x="', "another end": "' autofocus onfocus='alert(1)",
    "ends of all": "</title></style></script></textarea></svg><script>alert(1)</script>",
    "a template": "{{ 7 * 7 }} {% include 'base.html' %} {# x #}", "a comment": "--><img src=x onerror=alert(1)><!--",
    "a section": "]]><script>alert(1)</script>", "a drawing": "<svg onload=alert(1)><use href='data:x'/></svg>",
    "a base": "<base href='http://a.example/'><link rel=stylesheet href=//a.example/x>",
    "a refresh": "<meta http-equiv=refresh content='0;url=http://a.example'>",
    "a frame": "<iframe srcdoc='x'></iframe>", "wide": "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    "a link that runs": "javascript:alert(1)", "escaped twice": "&amp;lt;script&amp;gt;", "a tag cut off": "<script ",
    "UTF-7": "+ADw-script+AD4-alert(1)", "a null": "<scr\0ipt>alert(1)</scr\0ipt>",
}
HOSTILE = TEXTS | IN_HTML
ALL = pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)


class Structure(Tags):
    """What a page is made of, and what it says."""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *(name for name, _ in attrs)))


def race_of(*texts):
    first, *_ = reports = [filled(RaceReport, text, CLOSED) for text in texts]
    return race_page(replace(first, races=tuple(race for report in reports for race in report.races)), lambda _: [])


def verdict_of(*texts):
    sections = [each for text in texts for each in filled(Document, text, CLOSED).sections
                if not isinstance(each, Picture)]   # evaluate and doctor have none, and their names are ours
    cards = [{"title": text, "word": text, "tone": "bad", "beside": text, "reasons": [text, text]} for text in texts]
    return render("verdict.html", verdict_values(Document((Heading(texts[0], 1), *sections)), cards))


def waits_of(*texts):
    return gil_page([make_process(threads=tuple(
        make_thread(number, [], called=text, entry=text, name=text) for number, text in enumerate(texts, 1)))])


@ALL
@pytest.mark.parametrize("page_of", [race_of, verdict_of, waits_of])
def test_no_text_is_markup(hostile, page_of):
    page = page_of(hostile)
    found, plain = Structure(page), Structure(page_of("words"))
    # Words in backticks are shown as code.
    assert [each for each in found.tags if each != ("code",)] == [each for each in plain.tags if each != ("code",)]
    assert not ({*found.text} & {*UNSEEN, *BLANK}) - {"\n"}
    assert len(page) < 2_000_000


@pytest.mark.parametrize("name", PAGES)
def test_page_is_complete_and_small(name):
    page = PAGES[name]()
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page.replace("&#39;", "'")
    assert not re.search(r"""\s(?:src|href)="(?!#|data:)""", page), "all of it is within"
    assert not re.search(r"""\s(?:style|on\w+)=""", page), "the policy forbids them"
    assert len(page) <= 500_000
    assert not list(PrivateNames().page_leaks(page))


def test_race_shows_both_accesses_in_their_source():
    page = race_page()
    code = re.sub("<[^>]*>", "", re.search(r'<div class="code">(.*?)</div>', page, re.DOTALL)[1])
    assert code.startswith("11 def deposit(self, amount):12     if amount")
    assert "1 2 14     self.balance += amount15     return" in code
    assert "<mark>self.balance</mark> += amount" in page
    assert "class Account" not in page        # AROUND lines and no more
    [line] = re.findall(r'<span class="line hit">.*?</code>', page.split('<div class="sides">')[0])
    assert re.findall(r"badge b(\d)", line) == ["1", "2"]   # both did it there
    for text in ("Hold Bank.lock over bank.py:14, too.", "Bank.lock", "bank.py:20", "thread-2",
                 "teller.py:31", "main.py:5", "2 updates lost in a re-run", "an estimate is enough",
                 "1 data race and 1 atomicity violation in main.py"):
        assert text in page, text
    assert "Thread.run" not in page           # where every thread begins
    assert ROOT not in page


def test_race_shows_code_as_code():
    page = Structure(race_page().partition("<main")[2].partition("</main>")[0])
    assert "+= in line 14 reads, computes, writes" in page.text
    assert "`" not in page.text


def test_source_that_has_changed_since_is_not_shown():
    changed = race_page(lines=lambda _: ["something else\n"] * 20)
    assert "something else" not in changed
    assert "+= amount" in changed


def test_near_accesses_share_an_excerpt_and_far_ones_do_not():
    def excerpts(line):
        place = replace(make_access().place, line=line, source="")
        access = make_access(place=place, pause=replace(make_access().pause, line=line))
        race = replace(make_report().races[0], second=access, first=make_access(place=replace(place, line=40)))
        [found] = race_values(json_.plain(make_report(races=(race,))), lambda _: ["x\n"] * 99)["races"]
        return found["excerpts"]

    assert [[line["number"] for line in each["lines"] if line["sides"]] for each in excerpts(45)] == [[40, 45]]
    assert [[line["number"] for line in each["lines"] if line["sides"]] for each in excerpts(90)] == [[40], [90]]


def test_program_without_a_race_says_so():
    page = race_page(make_report(races=(), notes=(), suppressed=()))
    assert "The check was incomplete." in page
    assert "No race" not in page
    page = race_page(make_report(races=(), notes=(), suppressed=(), lost=()))
    assert "No race in what this run did." in page
    assert "No race in main.py" in page


def test_verdicts_are_cards_above_the_report():
    page = evaluate_page()
    assert re.findall(r'<p class="word">(.*?)</p>', page)[0] == "BLOCKED"
    assert page.index('class="cards"') < page.index("What turns the GIL on")
    assert "nothing in the way" in doctor_page()


def test_what_limits_a_program_stands_first():
    page = gil_page()
    assert page.count("The GIL limits it") == 1
    assert page.index("The GIL limits it") < page.index("What each thread did")


def test_bars_are_shares_of_the_longest_life():
    threads = [
        {"process": 1, "name": "a", "seconds": 2.0, "cpu": 1.0, "waited": 0.5, "parked": 0.25, "spun": 0.0,
         "run_queue": None, "idle": 0.0},
        {"process": 1, "name": "b", "seconds": 1.0, "cpu": 3.0, "waited": 0.0, "parked": 0.0, "spun": 0.0,
         "run_queue": 0.0, "idle": 5.0},   # clocks differ
    ]
    first, second = wait_values({"threads": threads, "program": ["x y"], "processes": 1},
                                Document((Heading("t", 1),)))["bars"]
    assert [(part["name"], part["x"], part["width"]) for part in first["parts"]] == [
        ("ran", 0, WIDTH / 2), ("gil", WIDTH / 2, WIDTH / 4), ("locks", WIDTH * 3 / 4, WIDTH / 8)]
    assert [(part["name"], part["width"]) for part in second["parts"]] == [("ran", WIDTH / 2)]
    assert "waited for the GIL: 500 ms" in first["says"]


def test_page_that_would_tell_of_somebody_is_refused(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "box7")
    monkeypatch.setenv("USER", "ann")
    values = verdict_values(Document((Heading("bench of Ann on box7 in /home/ann/x/y.py", 1),)), [])
    with pytest.raises(ToolkitError) as told:
        single_page("x.html", "verdict.html", values)
    assert "the name of the user, 'Ann', 3 times: ..." in str(told.value)
    assert "the name of the host, 'box7', 3 times" in str(told.value)
    assert "/home" not in str(told.value), "that is left out by itself"
    monkeypatch.setenv(PUBLIC, "ann,box7")
    page = single_page("x.html", "verdict.html", values)
    assert "bench of Ann on box7 in &lt;folder&gt;/y.py" in page
    assert page.replace("&lt;folder&gt;/y.py", "").count("y.py") == 0


def test_how_a_program_ended_goes_before_its_page(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("socket.gethostname", lambda: "box7")
    said = []
    page = HtmlFile("x.html", said.append)
    values = [verdict_values(Document((Heading(title, 1),)), []) for title in ("on box7", "on any")]
    assert page.saved("verdict.html", values[0]) == 2
    assert not (tmp_path / "x.html").exists()
    assert "the name of the host, 'box7'" in said.pop()
    assert page.saved("verdict.html", values[1]) == 0
    assert said == ["gilscope: made x.html"]


MADE = {"command": "gilscope race /home/ann/a.py --html r.html", "date": "2026-11-24", "by": "Ann & Co"}


@pytest.mark.parametrize("values", [
    verdict_values(Document((Heading("A title", 1),)), []),
    {"title": "A title", "document": [], "cards": []} | page_values("A title", "A sentence."),   # made for a site
], ids=["report", "page of a site"])
def test_page_says_what_made_it_when_and_who_publishes_it(values):
    page = single_page("x.html", "verdict.html", values, made=MADE)
    foot = page.partition("<footer>")[2]
    assert "Published by Ann &amp; Co." in foot
    assert (f"Made by gilscope {__version__} on 2026-11-24 with <code>gilscope race &lt;folder&gt;/a.py --html r.html"
            in foot)


def test_command_line_reaches_the_page(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    args = SimpleNamespace(html="x.html", by="Ann", words=["gil", "--html", "x.html", "a b.py"])
    HtmlFile.requested(args).write("verdict.html", verdict_values(Document((Heading("A title", 1),)), []))
    foot = (tmp_path / "x.html").read_text(encoding="utf-8").partition("<footer>")[2]
    assert "with <code>gilscope gil --html x.html &#39;a b.py&#39;</code>" in foot
    assert "Published by Ann." in foot
    assert f"on {datetime.now(UTC).year}-" in foot


def test_publisher_without_a_page_is_refused():
    with pytest.raises(ToolkitError, match="add --html FILE"):
        HtmlFile.requested(SimpleNamespace(html=None, by="Ann", words=[]))


COMMANDS = [["report", "x"], ["evaluate", "."], ["doctor"], ["race", "x.py"], ["gil", "x.py"]]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_file_that_cannot_be_meant_is_refused_at_once(words, capsys):
    for name, message in (("x.txt", "does not end in .html"), ("nowhere/x.html", "there is no folder 'nowhere'")):
        with pytest.raises(SystemExit) as ended:
            cli.main([words[0], "--html", name, *words[1:]])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
