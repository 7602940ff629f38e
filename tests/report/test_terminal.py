import functools
import io
import re

import pytest

from gilscope.toolkit.model import Cell, Note
from gilscope.toolkit.report import terminal
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Table
from gilscope.toolkit.report.markdown import render as render_markdown
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.terminal import split_columns
from gilscope.toolkit.report.wording import entry_text
from tests.fakes import RunMaker, make_run

KEYS = (Column(title="model", key=True), Column(title="N", key=True))


def columns(groups, main=1, detail=0):
    return (*KEYS, *(Column(title=f"c{i}", group=g, detail=i >= main) for g in groups for i in range(main + detail)))


def test_everything_side_by_side_where_it_fits():
    assert split_columns(columns("AB"), [5, 2, 10, 10], 33, 2) == [[0, 1, 2, 3]]   # 5+2 + 2+2 + 10+2 + 10


def test_groups_that_do_not_fit_are_put_below_with_the_keys_again():
    assert split_columns(columns("AB"), [5, 2, 10, 10], 32, 2) == [[0, 1, 2], [0, 1, 3]]


def test_details_go_below_to_keep_groups_side_by_side():
    # Two groups of 10 + 2 + 10: 44 + keys do not fit in 40, the main columns 10 + 2 + 10 do.
    parts = split_columns(columns("AB", 1, 1), [5, 2, 10, 10, 10, 10], 40, 2)
    assert parts == [[0, 1, 2, 4], [0, 1, 3, 5]]


def test_group_too_wide_for_a_table_is_cut_between_columns():
    assert split_columns(columns("A", 3), [5, 2, 10, 10, 10], 25, 2) == [[0, 1, 2], [0, 1, 3], [0, 1, 4]]


@functools.cache
def example_document():
    return run_document(make_run())


@pytest.mark.parametrize("width", [30, 50, 60, 80, 100, 120, 200])
def test_no_entry_is_cut_off_at_any_width(width):
    document = example_document()
    text = terminal.render(document, width=width)
    assert "…" not in text
    squeezed = re.sub(r"\s", "", text)
    for section in document.sections:
        if isinstance(section, Table):
            for note in section.footnotes:
                assert re.sub(r"\s", "", note) in squeezed
            for entry in (entry for row in section.rows for entry in row):
                if width >= 50:   # below, words of a cell stand among those of its neighbours
                    assert re.sub(r"\s", "", entry_text(entry)) in squeezed


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(width):
    lines = terminal.render(example_document(), width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_ascii_alone_has_no_escapes():
    text = terminal.render(example_document(), ascii_only=True)
    assert text.isascii()
    assert "\x1b" not in text


def test_markup_in_a_name_is_shown_as_it_is():
    document = Document((Lines("[bold]x[/bold]", ("[red]y",)), Heading("[b]"),
                         Table(title="", columns=KEYS, rows=((Entry("[i]z"), Entry("1")),))))
    text = terminal.render(document)
    for each in ("[bold]x[/bold]", "[red]y", "[b]", "[i]z"):
        assert each in text


class Tty(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_terminal_gets_colours_and_a_pipe_none(monkeypatch):
    document = example_document()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", Tty())
    assert "\x1b[" in terminal.render_for_stdout(document)
    assert "±" in terminal.render_for_stdout(document)
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert "\x1b[" not in terminal.render_for_stdout(document)


@pytest.mark.parametrize(("encoding", "spread"), [("utf-8", "±3 %"), ("ascii", "+-3 %"), ("latin-1", "±3 %")])
def test_pipe_gets_what_its_encoding_has(encoding, spread, monkeypatch):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    text = terminal.render_for_stdout(example_document())
    assert spread in text
    text.encode(encoding)


def test_each_distinct_reason_is_one_footnote():
    maker = RunMaker(rounds=6)
    maker.measure(Cell(workload="w", runner="serial", workers=1, build="3.14"), 1.0)
    for runner, reason in (("a", "same"), ("b", "same"), ("c", "other")):
        maker.skip(Cell(workload="w", runner=runner, workers=1, build="3.14"), reason)
    (table,) = [s for s in run_document(maker.run(("3.14",))).sections if isinstance(s, Table) and s.title == ""]
    assert table.footnotes == ("same", "other")
    assert [row[2].marks for row in table.rows] == [(), (1,), (1,), (2,)]


def test_rows_without_a_number_are_folded_only_with_the_same_reasons():
    maker = RunMaker(rounds=6)
    maker.measure(Cell(workload="w", runner="serial", workers=1, build="3.14"), 1.0)
    for workers, reason in ((1, "x"), (2, "x"), (4, "y")):
        maker.skip(Cell(workload="w", runner="a", workers=workers, build="3.14"), reason)
    (table,) = [s for s in run_document(maker.run(("3.14",))).sections if isinstance(s, Table) and s.title == ""]
    assert [(row[0].value, row[1].value) for row in table.rows] == [("serial", "1"), ("a", "1,2"), ("a", "4")]


def starved_run():
    maker = RunMaker()
    maker.measure(Cell(workload="w", runner="serial", workers=1, build="3.14"), 1.0)
    for workers in (2, 4):
        maker.measure(Cell(workload="w", runner="a", workers=workers, build="3.14"), 1.0 / workers, starved=8)
    return run_document(maker.run(("3.14",)))


def test_starved_cell_shows_neither_time_nor_ratio():
    document = starved_run()
    for text in (terminal.render(document, width=120), render_markdown(document)):
        assert not re.search(r"500 ms|250 ms|[24]\.00", text)   # what it measured
        assert text.count("did not get the cores it needed in more than half of its rounds") == 1
    (table,) = [s for s in document.sections if isinstance(s, Table) and s.title == ""]
    assert [row[2].value for row in table.rows][1:] == ["starved"]


def test_starved_cell_is_grey_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", Tty())
    assert re.search(r"\x1b\[2m *starved", terminal.render_for_stdout(starved_run()))


def test_details_that_no_row_has_are_no_table():
    maker = RunMaker()
    for build in ("3.14", "3.14t"):
        maker.measure(Cell(workload="w", runner="serial", workers=1, build=build), 1.0, starved=8)
    document = run_document(maker.run(("3.14", "3.14t")))
    assert "memory" not in terminal.render(document, width=60)
    assert "memory" not in render_markdown(document)


def test_notes_of_the_run_stand_above_the_tables():
    maker = RunMaker(rounds=6)
    maker.measure(Cell(workload="w", runner="serial", workers=1, build="3.14"), 1.0)
    text = terminal.render(run_document(maker.run(("3.14",), notes=(Note(text="not a fair pair"),))))
    assert text.index("WARNING: not a fair pair") < text.index("\nw\n")


def test_markdown_shows_special_characters_as_they_are():
    document = Document((Table(title="", columns=(Column(title="a|b"),), rows=((Entry("<x> *y* ~z~"),),)),))
    assert render_markdown(document).splitlines() == ["| a\\|b |", "| ---: |", "| \\<x\\> \\*y\\* \\~z\\~ |"]
