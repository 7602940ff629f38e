"""What holds of every figure of every experiment, by its description: made-up runs, and the one in results/example."""

import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from gilscope.toolkit.concurrency_models import APPEARANCES, MODELS, family
from gilscope.toolkit.experiments import catalog
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.report import figures_of
from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryFigure,
    LineFigure,
    TimelineFigure,
)
from gilscope.toolkit.report.figures.plots.legend_entries import entries
from gilscope.toolkit.report.figures.plots.palette import MORE_MARKERS, series_styles
from tests.conformance.builds import ROOT
from tests.experiments.made_up import KINDS, UNPUBLISHED, figures, made_up_run
from tests.experiments.test_results import planned
from tests.fakes import RunMaker

SVG = "{http://www.w3.org/2000/svg}"
ALL = pytest.mark.parametrize("kind", KINDS)
MARKS_IN_WORDS = ("cross", "x:", "whisker", "bars and points", "lines:")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(params=catalog.EXPERIMENTS)
def name(request):
    return request.param


def series_of(figure):
    return [each for panel in figure.panels for each in getattr(panel, "series", ())]


def drawn(value, axis):
    return math.isfinite(value) and (value > 0 or not axis.log)


@ALL
def test_there_are_figures_unless_what_they_show_is_not_stored(name, kind, folder):
    found = figures(name, kind, folder)
    # Traces hold paths and are not published.
    assert found or name == "scaling" or (kind == "measured" and name in {"gil-trace", *UNPUBLISHED})
    assert len({figure.name for figure in found}) == len(found)


@pytest.mark.parametrize("nothing", ["skipped", "unmeasured"])
def test_no_figure_is_drawn_of_what_has_no_value(name, nothing):
    _, plan = planned(name, EffortLevel.QUICK)
    maker = RunMaker()
    for cell in plan.cells if nothing == "skipped" else ():
        maker.skip(cell, "nothing works here")
    run = maker.run(("3.14", "3.14t"), options={"experiment": name, "effort": "quick"})
    assert figures_of(catalog.find(name), run, None) == []


def test_a_cross_stands_for_a_cell_that_was_planned(name, folder):
    _, plan = planned(name, EffortLevel.QUICK)
    run = made_up_run(name, EffortLevel.QUICK, folder, whole=True)
    for figure in figures_of(catalog.find(name), run, folder):
        if isinstance(figure, LineFigure | CategoryFigure):
            crosses = [value for each in series_of(figure) for value in each.y if not drawn(value, figure.y)]
            assert len(crosses) <= len(plan.skips), figure.name   # such as gevent without a GIL: the table has them


@ALL
def test_every_mark_that_occurs_is_explained_and_no_other(name, kind, folder):
    for figure in figures(name, kind, folder):
        said = [(entry.mark, entry.name) for entry in entries(figure)]
        assert len(set(said)) == len(said)
        if isinstance(figure, LineFigure | CategoryFigure):
            values = [(each, value) for each in series_of(figure) for value in each.y]
            names = {each.name for each, value in values}
            assert {name for mark, name in said if mark in {"series", "crosses"}} == names
            assert {name for mark, name in said if mark == "series"} == {
                each.name for each, value in values if drawn(value, figure.y)}
            assert ("cross" in dict(said)) is any(not drawn(value, figure.y) for _, value in values), figure.name
            assert bool({"whiskers", "band"} & dict(said).keys()) is any(
                lo < hi and math.isfinite(hi - lo) and drawn(value, figure.y) for each in series_of(figure)
                for value, lo, hi in zip(each.y, each.lo or each.y, each.hi or each.y, strict=True))
        elif isinstance(figure, TimelineFigure):
            lanes = [lane for panel in figure.panels for lane in panel.lanes]
            states = {state for lane in lanes for *_, state in lane.spans}
            assert {name for _, name in said} == states | {what for lane in lanes for _, what in lane.points}


@ALL
def test_marks_are_explained_in_the_legend_not_in_the_note(name, kind, folder):
    for figure in figures(name, kind, folder):
        assert not [word for word in MARKS_IN_WORDS if word in figure.note.lower()], figure.note


@ALL
def test_a_model_has_its_colour_and_mark(name, kind, folder):
    for figure in figures(name, kind, folder):
        measured = [each for each in series_of(figure) if each.style == "measured"]
        assert len({bool(each.model) for each in measured}) <= 1, "all series are models or none is"
        known = series_styles(series_of(figure))
        for model in {family(each.model) for each in measured if each.model}:
            looks = [known[name] for name in dict.fromkeys(each.name for each in measured
                                                           if each.model and family(each.model) == model)]
            assert looks[0].marker == APPEARANCES[model].marker
            assert len({(look.marker, look.fill) for look in looks}) == len(looks)
        for each in measured:
            if each.model:
                look, wanted = known[each.name], APPEARANCES[family(each.model)]
                assert look.colour == wanted.colour
                assert look.marker in (wanted.marker, *MORE_MARKERS)   # another one from its third series on
            else:
                assert known[each.name].colour not in {look.colour for look in APPEARANCES.values()}
        models = {}
        for each in measured:
            assert models.setdefault(each.name, each.model) == each.model, "a name stands for one model"
        assert len({(look.colour, look.marker, look.fill, str(look.dash)) for look in known.values()}) == len(known)


@ALL
def test_a_series_named_after_a_model_is_one(name, kind, folder):
    for figure in figures(name, kind, folder):
        for each in series_of(figure):
            if each.style == "measured" and {each.name, each.name.partition(":")[0]} & {*MODELS, *APPEARANCES}:
                assert each.model, each.name


@ALL
def test_models_stand_in_the_legend_in_the_order_of_their_table(name, kind, folder):
    for figure in figures(name, kind, folder):
        models = {each.name: family(each.model) for each in series_of(figure) if each.model}
        places = [list(APPEARANCES).index(models[entry.name]) for entry in entries(figure) if entry.name in models]
        assert places == sorted(places)


@ALL
def test_no_bar_stands_on_a_logarithmic_axis(name, kind, folder):
    for figure in figures(name, kind, folder):
        if isinstance(figure, CategoryFigure) and not figure.y.log:
            assert not figure.y.lo, "bars start at 0"


@ALL
def test_footer_says_where_and_when_and_with_how_much_effort(name, kind, folder):
    for figure in figures(name, kind, folder):
        last = figure.footer.splitlines()[-1]
        assert last.startswith("Measured 2026-11-")
        assert "cores, Linux; " in last
        assert ("in full" if kind == "full" else "--quick") in last


@ALL
def test_axes_have_titles_with_units(name, kind, folder):
    for figure in figures(name, kind, folder):
        for axis in (getattr(figure, which, None) for which in ("x", "y")):
            if isinstance(axis, Axis):
                words = any(not text[0].isdigit() for _, text in axis.ticks)   # "p50": the marks are no numbers
                assert axis.title
                assert axis.seconds or words or axis.title.endswith(")"), axis.title
        if isinstance(figure, CategoryFigure):
            assert figure.x_title


@ALL
def test_lanes_are_threads_by_name_and_counted(name, kind, folder):
    for figure in figures(name, kind, folder):
        if isinstance(figure, TimelineFigure):
            assert figure.counted in figure.states
            for lane in (lane for panel in figure.panels for lane in panel.lanes):
                assert lane.name.startswith(("CPU ", "I/O"))
                assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(sorted(lane.spans)))


def test_published_figures_are_what_the_project_makes(name, folder):
    # After a wanted change: gilscope report results/example/experiments/NAME --publish, and copy SVGs and report.md.
    for figure in figures(name, "measured", folder):
        path = ROOT / "results" / "example" / "experiments" / name / f"{figure.name}.svg"
        said = " ".join(" ".join(node.itertext()) for node in ET.parse(path).iter(f"{SVG}text")).split()
        wanted = [figure.title, figure.footer, *(entry.name for entry in entries(figure)),
                  *(panel.title for panel in figure.panels)]
        assert not {word for text in wanted for word in text.split()} - {*said}, path
        assert f"![{figure.title}]({path.name})" in path.with_name("report.md").read_text()


@ALL
def test_titles_are_there_and_each_panel_of_several_is_told_apart(name, kind, folder):
    for figure in figures(name, kind, folder):
        assert figure.title
        titles = [panel.title for panel in figure.panels]
        assert len(set(titles)) == len(titles)
        assert all(titles) or len(titles) == 1
