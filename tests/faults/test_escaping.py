"""No text of a measured or checked program is obeyed by a terminal, a log's keeper, Markdown, SARIF, or a figure."""

import io
import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import fields, is_dataclass, replace

import pytest
from markdown_it import MarkdownIt

from gilscope.toolkit import cli, escaping
from gilscope.toolkit.builds.find import FoundBuilds
from gilscope.toolkit.commands import builds, list_, streams
from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.child.base import describe_error
from gilscope.toolkit.measure.child.user_code import shown
from gilscope.toolkit.model import Cell
from gilscope.toolkit.race.report import json_, sarif, text
from gilscope.toolkit.race.report.model import Race, RaceReport
from gilscope.toolkit.race.terms import RaceKind
from gilscope.toolkit.records import from_plain
from gilscope.toolkit.report import markdown, terminal
from gilscope.toolkit.report.document import Document
from gilscope.toolkit.report.figures import plots
from gilscope.toolkit.report.figures.figure import dump, load
from gilscope.toolkit.report.progress import ProgressReporter
from tests.faults.hostile_texts import TEXTS, UNSEEN, filled, is_safe
from tests.report.figures import FIGURES

pytestmark = pytest.mark.newest

CLOSED = {(Race, "kind"): RaceKind.LOST_UPDATE}   # one of a few words, which are ours
WIDE = 300_000   # characters: nothing is wrapped
# Of each kind one; the others are `slow`, as are those that take long.
FAST = {
    "colours", "C1 controls", "bidi override", "line separators", "a line", "an old command", "escapes of commands",
    "a table", "markup", "tags", "links", "fences", "mathematics", "bytes of no text", "control characters", "blanks"}
ALL = pytest.mark.parametrize("hostile", [
    pytest.param(text, id=name, marks=() if name in FAST else pytest.mark.slow) for name, text in TEXTS.items()])
SGR = r"\x1b\[[0-9;]*m"


def squeezed(shown):
    """Return text without the spaces that a layout may add or take, and with what a command would begin with."""
    return re.sub(r"\s", "", shown).replace("\\u003a", ":").replace("\\u0023", "#")


def document_of(words):
    return filled(Document, words, CLOSED)


def report_of(words):
    report = filled(RaceReport, words, CLOSED)
    return replace(report, notes=tuple(replace(each, severity="note") for each in report.notes))


def test_every_character_that_does_not_show_is_escaped():
    assert not [each for each in UNSEEN if escaping.visible(each) == each or is_safe(escaping.visible(each))]
    assert escaping.visible("é ± ² 日本 e\u0301 a b") == "é ± ² 日本 e\u0301 a b"


@ALL
@pytest.mark.parametrize("width", [20, 100, WIDE])
def test_a_document_on_a_terminal(hostile, width):
    rendered = terminal.render(document_of(hostile), width=width)
    assert not is_safe(rendered)
    if width == WIDE:   # and everything is there, as text
        assert squeezed(escaping.visible(hostile)) in squeezed(rendered)


@ALL
def test_a_document_in_ascii(hostile):
    rendered = terminal.render(document_of(hostile), ascii_only=True)
    assert rendered.isascii()
    assert not is_safe(rendered)


@ALL
def test_a_document_in_colour(hostile, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    rendered, plain = (terminal.render_for_stdout(document_of(words)) for words in (hostile, "words"))
    assert not is_safe(re.sub(SGR, "", rendered))
    assert set(re.findall(SGR, rendered)) <= set(re.findall(SGR, plain))   # ours alone
    assert re.findall(SGR, plain)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@ALL
def test_a_document_in_markdown(hostile):
    rendered = markdown.render(document_of(hostile))
    assert not is_safe(rendered)
    assert structure(rendered) == structure(markdown.render(document_of("words")))
    parsed = squeezed("".join(token.content for token in inline(rendered)))
    assert squeezed(escaping.visible(hostile)) in parsed


def inline(rendered):
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for token in parser.parse(rendered):
        yield from token.children or [token]


def structure(rendered):
    """Return what Markdown is made of, without what it says."""
    return [(token.type, token.tag) for token in inline(rendered) if token.type != "text"]


@ALL
@pytest.mark.parametrize("color", [False, True])
def test_races_as_text(hostile, color):
    rendered, plain = (text.render(report_of(words), color=color, notes=True) for words in (hostile, "words"))
    assert not is_safe(re.sub(SGR, "", rendered))
    assert re.findall(SGR, rendered) == re.findall(SGR, plain)
    assert rendered.count("\n") == plain.count("\n")
    assert len(rendered) < 1_000_000
    one = text.render_race(report_of(hostile).races[0], hostile, color=color)   # as pytest shows it
    assert not is_safe(re.sub(SGR, "", one))


@ALL
def test_workflow_commands(hostile):
    shown = escaping.visible(hostile)
    command = f"::error file={escaping.in_command_property(shown)},line=1::{escaping.in_command(shown)}"
    assert not is_safe(command, commands=["::error "])
    file, said = re.fullmatch("::error file=([^,:]*),line=1::(.*)", command).groups()   # as they are read
    assert decoded(file) == decoded(said)


def decoded(value):
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        value = value.replace(code, character)
    return value


@ALL
def test_races_as_sarif(hostile):
    rendered = sarif.render(report_of(hostile), notes=True)
    assert not is_safe(rendered)
    log = json.loads(rendered)
    assert all(not is_safe(each.replace("::", "")) or "##" in each for each in strings(log))
    assert not [each for each in messages(log) if re.search(r"(?<!\\)\]\(", each)]   # SARIF's links


def strings(value):
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(each)


def messages(value):
    if isinstance(value, dict):
        yield from [value["message"]["text"]] if "message" in value else []
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from messages(each)


@ALL
def test_races_as_json_are_whole_and_come_back(hostile):
    rendered = json_.render(report_of(hostile))
    assert not is_safe(rendered)
    document = json.loads(rendered)
    del document["schema"], document["tool"]
    assert from_plain(RaceReport, document) == report_of(hostile)


def test_a_path_of_sarif_leads_to_the_file():
    report = report_of("words")
    place = replace(report.races[0].second.place, path="words/a\n\u202e b.py")
    race = replace(report.races[0], second=replace(report.races[0].second, place=place))
    [result, *_] = json.loads(sarif.render(replace(report, races=(race,))))["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == "a%0A%E2%80%AE%20b.py"


@ALL
def test_messages(hostile, capsys):
    streams.print_stdout(f"what: {hostile}\n  {hostile}")
    streams.print_stderr(f"gilscope: {hostile}")
    told = capsys.readouterr()
    assert not is_safe(told.out)
    assert not is_safe(told.err)
    assert len(told.out) < 1_000_000


@ALL
@pytest.mark.parametrize("terminal", [False, True])
def test_progress(hostile, terminal, capsys, monkeypatch):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    cell = Cell(build=hostile, workload=hostile, runner=hostile, workers=1, phase="steady")
    with ProgressReporter(print_stderr) as reporter:
        reporter.on_round_start(0, 1, 1, may_stop=False)
        reporter.on_arm_start(cell)
        reporter.note(hostile)
        reporter.on_arms_end(1, 0.0)
    told = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", capsys.readouterr().err)   # what rich moves its bar with
    assert not is_safe(told)
    if terminal:
        assert not hostile.startswith("[bold]") or "[bold]" in told   # no markup


@ALL
def test_builds_and_what_they_can(hostile, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(builds, "find_builds", lambda *_, **__: filled(FoundBuilds, hostile))
    assert cli.main(["builds"]) == 0
    assert not is_safe(capsys.readouterr().out)
    assert cli.main(["builds", "--json"]) == 0
    assert not is_safe(shown := capsys.readouterr().out)
    assert json.loads(shown)["builds"][0]["version"] == hostile
    said = {hostile: hostile}
    monkeypatch.setattr(list_, "_ask", lambda _: {hostile: Abilities(runners=said, modules=said, isolated=said)})
    monkeypatch.setattr(list_, "find_builds", lambda *_, **__: filled(FoundBuilds, hostile))
    assert cli.main(["list", "--builds", "all"]) == 0
    assert not is_safe(capsys.readouterr().out)


@ALL
@pytest.mark.parametrize("words", [
    ["report"], ["report", "--publish"], ["report", "--json"], ["compare", "a"], ["race"], ["race", "--json"], ["gil"],
    ["experiment", "show"], ["experiment", "run"], ["builds", "remove"], ["builds", "add"], ["evaluate"], [],
    ["doctor", "--builds"], ["run", "--rounds"], ["run", "--builds"], ["run"], ["list", "--builds"],
])
def test_words_of_the_command_line(hostile, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    word = re.sub("[\0\ud800-\udc7f]", "", hostile)[:50]   # as a shell can give it, and a file be called
    try:
        code = cli.main([*words, word])
    except SystemExit as left:
        code = left.code
    told = capsys.readouterr()
    assert code in {2, 3}
    assert not is_safe(told.out + told.err)


@ALL
def test_figures(hostile):
    figures = [with_texts(make(), hostile) for make in FIGURES.values()]
    for figure in load(dump(figures)):
        assert set(repr(figure)) & set(UNSEEN) == set()
    assert all(each in str(load(dump(figures[:1]))) for each in ("$x^2$",) if each in hostile)


OURS = {"name", "model", "style", "axis"}   # names of files, of models, of styles; the axis of a rule is checked


def with_texts(value, text):
    """Return a figure with `text` for all that it says."""
    if isinstance(value, tuple):
        return tuple(with_texts(each, text) for each in value)
    if is_dataclass(value):
        return replace(value, **{each.name: with_texts(getattr(value, each.name), text)
                                 for each in fields(value) if each.name not in OURS})
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("name", [
    name if name == "bars" else pytest.param(name, marks=pytest.mark.slow) for name in FIGURES])
def test_figures_as_they_are_drawn(name, tmp_path):
    pytest.importorskip("matplotlib")
    hostile = "".join(TEXTS[each] for each in ("mathematics", "tags", "colours", "bidi override", "bytes of no text"))
    [figure] = load(dump([with_texts(FIGURES[name](), hostile)]))
    svg, _png = plots.draw(figure, tmp_path)
    drawn = squeezed("".join(ET.parse(svg).getroot().itertext()))
    assert not is_safe(drawn)
    assert squeezed("$x^2$ $$\\frac{a}{b}$$") in drawn


@pytest.mark.parametrize("error", [ValueError("x" * 5_000_000), SystemExit("y" * 5_000_000), KeyError("z" * 5_000_000)])
def test_an_exception_is_cut_where_it_is_raised(error, capsys):
    assert len(shown(error)) < 1000
    assert re.search(r"5,000,00\d characters", shown(error))
    answer = describe_error(error)
    assert len(answer["reason"]) < 1000
    assert len(capsys.readouterr().err) < 5000
