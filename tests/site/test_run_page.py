"""The page of a run: its numbers are those of the report, and nobody else's markup gets into it."""

import dataclasses
import functools
import re
from itertools import pairwise

import pytest

from gilscope.toolkit.model import Note
from gilscope.toolkit.report.as_json import run_values
from gilscope.toolkit.report.document import Table
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.table.matrix import build_tables
from gilscope.toolkit.report.wording import entry_text
from gilscope.toolkit.site.charts.cells import ROW
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.store import load_run
from tests.fakes import make_run
from tests.site.made import EXAMPLE, KINDS, Tags, rendered

pytestmark = pytest.mark.newest

# Ways to break out of text, attributes, scripts, styles, addresses, comments, SVG and templates.
ATTACKS = (
    "<script>alert(1)</script>", "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    '"><script>alert(1)</script>', "' onmouseover='alert(1)", '" onfocus="alert(1)" autofocus="',
    "<svg onload=alert(1)>", "<svg><script>alert(1)</script></svg>", "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>", "<style>*{display:none}</style>", "<!--<script>alert(1)//-->", "--><b>x</b>",
    "<iframe src=javascript:alert(1)>", "<a href=javascript:alert(1)>x</a>", "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=0;url=//evil.example>", "<link rel=stylesheet href=//evil.example/x.css>",
    "<object data=//evil.example>", "<embed src=//evil.example>", "<form action=//evil.example><input name=x>",
    "<math><mtext></mtext><mglyph><style></style></mglyph></math>", "<details open ontoggle=alert(1)>",
    "{{ 7 * 7 }}", "{% include '/etc/passwd' %}", "{# x #}", "${alert(1)}", "&lt;b&gt;", "&#60;b&#62;", "]]><b>x</b>",
    "<use href=//evil.example#x>", "<animate attributeName=href values=javascript:alert(1)>", "<textarea>",
    "<plaintext>",
    "\x00<b>x</b>", "\u202e<b>x</b>", "`<code>`<b>x</b>`",
)


@functools.cache
def plain_values():
    return run_page(make_run(), KINDS)


@functools.cache
def plain_page():
    return Tags(rendered("run.html", plain_values()))


def attacked(run, text):
    """Return the run with `text` wherever somebody else's words are."""
    def cell(old):
        return dataclasses.replace(old, workload=old.workload + text, runner=old.runner + text, build=old.build + text)

    return dataclasses.replace(
        run, label=run.label + text, notes=(*run.notes, Note(text=text)), baseline=run.baseline + text,
        machine=dataclasses.replace(run.machine, cpu_model=text, system=text),
        builds=tuple(dataclasses.replace(each, label=each.label + text, version=each.version + text, compiler=text,
                                         config_args=text, revision=text, executable=text) for each in run.builds),
        measurements=tuple(dataclasses.replace(each, cell=cell(each.cell), observations=tuple(
            dataclasses.replace(one, gil_culprit=text) for one in each.observations)) for each in run.measurements),
        skips=tuple(dataclasses.replace(each, cell=cell(each.cell), reason=text) for each in run.skips),
        failures=tuple(dataclasses.replace(each, cell=cell(each.cell), kind=text, reason=text)
                       for each in run.failures),
        options={"selection": {"user": {"function": text, "payload": text}, "models": [text], "size": text},
                 "packages": [text]})


def test_dot_is_hollow_where_the_verdict_is_not_told_from_1():
    run = load_run(EXAMPLE / "second-worker")
    page = Tags(rendered("run.html", run_page(run, KINDS)))
    verdicts = [result.speedup.verdict() for table in build_tables(run) for row in table.rows
                for result in row.results
                if result.speedup is not None and result.absence is None and result.cell.runner != table.baseline]
    told = sum(verdict in {"faster", "slower"} for verdict in verdicts)
    marks = [each["class"] for each in page.named("use") if "class" in each]
    assert 0 < told < len(verdicts), "a run with both"
    assert (marks.count("clear"), marks.count("open")) == (told, len(verdicts) - told)


def test_kind_is_what_the_work_does_with_a_core():
    run = load_run(EXAMPLE / "two-hosts" / "host-1")
    page = run_page(run, {"countdown": "cpu", "tcp_echo": "io"})
    assert {each["title"]: each["sort"] for each in page["workloads"]} == {
        "countdown": "cpu", "tcp_echo": "mixed"}


@pytest.mark.parametrize("kind", ["native", "contention", "transfer"])
def test_kind_that_no_use_of_a_core_shows_is_that_of_the_catalogue(kind):
    page = run_page(load_run(EXAMPLE / "two-hosts" / "host-1"), {"countdown": kind})
    assert page["workloads"][0]["sort"] == kind


def test_cells_without_a_number_take_no_row_and_are_named_with_their_reason():
    run = load_run(EXAMPLE / "second-worker")
    (gil, _) = run_page(run, KINDS)["workloads"][0]["dots"]
    assert "free-threaded" not in {row["model"] for row in gil["rows"]}
    assert gil["absent"] == ["free-threaded (N = 2): skipped: the GIL is enabled in this process"]
    page = Tags(rendered("run.html", run_page(run, KINDS)))
    assert "No number: free-threaded (N = 2): skipped: the GIL is enabled in this process." in page.text
    assert not page.named("foreignobject")


def test_notes_of_a_workload_end_with_one_stop():
    text = Tags(rendered("run.html", run_page(load_run(EXAMPLE), KINDS))).text
    notes = re.findall(r"Note: (.*)", text)
    assert any("holds with 87.5\xa0%." in each or "holds with 87.5 %." in each for each in notes)
    assert all(each.endswith(".") and not each.endswith("..") for each in notes)


def test_what_is_about_the_whole_run_is_no_list():
    page = Tags(rendered("run.html", run_page(load_run(EXAMPLE / "second-worker"), KINDS)))
    before = page.text.partition("In short")[0]
    assert "12 of 12 rounds" in before
    first = next(i for i, (tag, _) in enumerate(page.tags) if tag == "table")
    assert "ul" not in {tag for tag, _ in page.tags[:first]}


def test_nothing_of_others_becomes_markup():
    wrong = markup_of(ATTACKS)
    if wrong:
        alone = {text: found for text in ATTACKS if (found := markup_of([text]))}
        pytest.fail(f"{alone or wrong}")


def markup_of(texts):
    """Return what some texts of others become on a page beside text."""
    text, run = " ".join(texts), make_run(rounds=3)
    page = Tags(rendered("run.html", run_page(attacked(run, text), KINDS, data={
        build.label + text: f"data/{number}.json" for number, build in enumerate(run.builds)})))
    ours = plain_page()
    found = {tag for tag, _ in page.tags} - {tag for tag, _ in ours.tags} - {"code"}
    found |= {name for _, attrs in page.tags for name in attrs} - {name for _, attrs in ours.tags for name in attrs} - {
        "title"}
    found |= {link for link in map(str, page.links()) if "evil" in link or "script:" in link}
    if "{{ 7 * 7 }}" in texts and "{{ 7 * 7 }}" not in page.text:
        found.add("{{ 7 * 7 }} is calculated")
    return found


def test_numbers_are_those_of_the_report():
    run = make_run()
    values, page = run_values(run), plain_values()
    rows = [row for each in page["workloads"] for row in each["rows"]]
    found = {(each["workload"], each["build"], each["model"], each["workers"]): each for each in values["cells"]}
    names = [title for each in page["workloads"] for title in [each["title"].partition(",")[0]] for _ in each["rows"]]
    assert len(rows) == len(values["cells"])
    for name, row in zip(names, rows, strict=True):
        cell = found[name, row["build"], row["model"], row["workers"]]
        assert row["verdict"] in {cell["status"], "baseline", "", (cell["speedup"] or {}).get("verdict")}
        for shown, field, part in ((row["time"], "time", "median"), (row["cpu"], "cpu_time", "median"),
                                   (row["metrics"][0], "memory", "bytes")):
            assert (shown or {"sort": None})["sort"] == (cell[field] or {}).get(part)
        if cell["speedup"]:
            assert row["ratio"]["sort"] == cell["speedup"]["ratio"]


def test_every_number_of_a_table_leads_to_the_pyperf_file_of_its_build():
    run = make_run()
    files = {build.label: f"data/run/{build.label}.json" for build in run.builds}
    values = run_page(run, KINDS, data=files)
    rows = re.findall('<tr class="[^"]*" data-build="([^"]*)"[^>]*>(.*?)</tr>', rendered("run.html", values), re.DOTALL)
    leading = 0
    for build, row in rows:
        _, *numbers, _ = re.findall('<td class="r" data-v="[^"]*">(.*?)</td>', row)   # without N and the rounds
        assert all(each.startswith(f'<a href="{files[build]}"') for each in numbers)
        leading += len(numbers)
    assert leading > 100
    overview, *_ = (each for each in values["beginning"] if each["kind"] == "table")
    for row in overview["rows"]:
        for column, entry in zip(overview["columns"][1:], row[1:], strict=True):
            assert entry.get("link") == (None if entry["sort"] is None else files[column["title"]])
    costs = [entry["link"] for each in values["workloads"] if each["overhead"]
             for row in each["overhead"]["rows"] for entry in row[1:] if entry["sort"] is not None]
    assert set(costs) <= set(files.values())
    assert costs


def test_words_are_those_of_the_terminal():
    run = make_run()
    texts = {entry_text(entry) for section in run_document(run).sections if isinstance(section, Table)
             for row in section.rows for entry in row}
    rows = [row for each in plain_values()["workloads"] for row in each["rows"]]
    ratios = {row["ratio"]["text"] for row in rows if row["ratio"]}
    assert ratios
    assert ratios <= texts


def test_cell_without_a_number_says_why_at_its_place():
    values = plain_values()
    whole = {text for each in values["workloads"] for chart in each["dots"] for text in chart["absent"]}
    assert any("free-threaded (N = " in each and each.endswith(": skipped: the GIL is enabled in this build")
               for each in whole)
    assert "interpreter-pool (N = 1, 2, 4 and 8): failed: round 1: crash: killed by SIGSEGV" in whole
    assert any("starved: did not get the cores" in each for each in whole)
    assert any("no ratio, as the baseline serial has no number" in each for each in whole)


def test_cells_with_one_reason_are_named_together():
    run = make_run()
    run = dataclasses.replace(run, skips=tuple(dataclasses.replace(each, reason="of this") for each in run.skips))
    for each in run_page(run, KINDS)["workloads"]:
        for chart in each["dots"]:
            assert len([text for text in chart["absent"] if text.endswith(": skipped: of this")]) <= 1


def test_rows_stand_below_one_another():
    for each in plain_values()["workloads"]:
        for chart in each["dots"]:
            rows, bottom = chart["rows"], chart["bottom"]
            if not rows:   # no cell has a number
                assert chart["absent"]
                continue
            assert all(first["y"] + ROW == second["y"]
                       for first, second in pairwise(rows))
            assert rows[-1]["y"] + ROW / 2 == bottom < chart["height"]


def test_every_picture_says_in_words_what_it_shows():
    page = plain_page()
    pictures = [attrs for attrs in page.named("svg") if attrs.get("role") == "img"]
    assert len(pictures) == 10
    assert all(len(attrs["aria-label"]) > 20 for attrs in pictures)
    assert all(attrs.get("aria-hidden") or attrs.get("role") for attrs in page.named("svg"))


def test_rounds_are_all_there():
    run = make_run(rounds=5)
    values = run_page(run, KINDS)
    assert {len(row["values"]) for each in values["workloads"] for row in each["rounds"]} == {5}


def test_page_of_a_run_without_values_can_be_made():
    run = dataclasses.replace(make_run(), measurements=(), rounds_done=0)
    assert "no value" in Tags(rendered("run.html", run_page(run, KINDS))).text
