"""What draws figures: a Python found for it, in an environment that is asked for once, and a process of its own."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.builds.environment import Environment
from gilscope.toolkit.builds.find import FoundBuilds
from gilscope.toolkit.builds.package_installer import INDEX_UNREACHED, WITHOUT_WHEEL, InstallProblem, InstallProblemKind
from gilscope.toolkit.commands.output import figures as commands_figures
from gilscope.toolkit.commands.output.figures import draw_pictures, python_that_draws
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.model import Build
from gilscope.toolkit.report.figures import drawing
from gilscope.toolkit.report.figures.drawing import CannotDrawError, draw_figures, drawing_python
from gilscope.toolkit.report.figures.figure import dump, load
from tests.report.figures import FIGURES

BUILD = Build(
    label="figures", version="3.15.0", executable="/p/3.15", base_executable="/p/3.15", free_threaded=False,
    source="explicit", debug=False, jit="no", compiler="GCC", opt_level="-O3", pgo=False, lto=False,
    allocator="pymalloc", revision="", config_args="")
OTHERS = (replace(BUILD, label="3.14t", version="3.14.2", executable="/p/3.14t", free_threaded=True),
          replace(BUILD, label="3.13", version="3.13.1", executable="/p/3.13"))


@pytest.fixture
def lacking(monkeypatch):
    """Give a function that says which versions' environments lack matplotlib and why; returns what was asked for."""
    def say_so(reasons):
        asked = []

        def environment(build, packages, optional, *, purpose, on_progress):
            asked.append(build.executable)
            assert (packages, purpose, build.label) == ([], "figures", "figures")
            reason = reasons.get(build.version)
            if isinstance(reason, BuildError):
                raise reason
            return Environment(python=Path(build.executable), missing={optional[0]: reason} if reason else {})

        monkeypatch.setattr(drawing, "build_environment", environment)
        monkeypatch.setattr(drawing, "find_builds", lambda _: FoundBuilds(builds=(OTHERS[0], BUILD, OTHERS[1]),
                                                                          problems=()))
        return asked

    return say_so


def test_our_own_interpreter_draws_where_it_can(lacking):
    asked = lacking({})
    assert drawing_python(print) == Path("/p/3.15")
    assert asked == ["/p/3.15"]


@pytest.mark.parametrize("reason", [WITHOUT_WHEEL, BuildError("cannot make an environment")])
def test_another_build_draws_where_ours_cannot_and_one_with_a_gil_first(lacking, reason):
    asked = lacking({"3.15.0": reason})
    assert drawing_python(print) == Path("/p/3.13")
    assert asked == ["/p/3.15", "/p/3.13"]


def test_where_none_can_each_is_named_with_its_reason(lacking):
    lacking(dict.fromkeys(("3.15.0", "3.14.2", "3.13.1"), WITHOUT_WHEEL))
    reasons = r"3\.15\.0: no wheel.*3\.13\.1: no wheel.*3\.14\.2t: no wheel.*"
    with pytest.raises(CannotDrawError, match=f"{reasons}with a CPython"):
        drawing_python(print)


def test_without_a_network_no_other_build_is_tried_and_it_is_said_how_to_draw_later(lacking, capsys):
    asked = lacking({"3.15.0": InstallProblem(INDEX_UNREACHED, kind=InstallProblemKind.UNREACHED)})
    assert python_that_draws("gilscope experiment show today") is None
    said = capsys.readouterr().err
    assert "the package index cannot be reached to install matplotlib from" in said
    assert "a mirror in PIP_INDEX_URL or UV_INDEX_URL, `gilscope experiment show today` draws them" in said
    assert said.count("\n") == 1
    assert asked == ["/p/3.15"]


@pytest.mark.parametrize("name", FIGURES)
def test_figure_comes_out_of_json_as_it_went_in(name):
    figure = FIGURES[name]()
    (again,) = load(dump([figure]))
    assert type(again) is type(figure)
    assert repr(again) == repr(figure)   # not ==: NaN is no NaN


def test_json_keeps_what_is_not_finite():
    kind = json.loads(dump([FIGURES["lines"]()]))[0]["panels"][0]["series"][2]["y"]
    assert math.isnan(kind[2])


def test_figures_are_drawn_by_another_process_whatever_lies_in_the_current_folder(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    assert draw_figures(Path(sys.executable), [FIGURES["bars"](), FIGURES["band"]()], tmp_path / "drawn") == [
        tmp_path / "drawn" / "bars.svg", tmp_path / "drawn" / "band.svg"]
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == {
        "bars.svg", "bars.png", "band.svg", "band.png"}


def test_process_that_fails_to_draw_is_told_in_its_words(tmp_path, monkeypatch, capsys):
    def fails(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "Traceback ...\nImportError: libgcc_s.so.1 is not there\n")

    monkeypatch.setattr(drawing, "run", fails)
    with pytest.raises(CannotDrawError, match=r"failed: ImportError: libgcc_s\.so\.1 is not there"):
        draw_figures(Path(sys.executable), [FIGURES["bars"]()], tmp_path)


@pytest.mark.network
@pytest.mark.slow
def test_matplotlib_is_installed_on_demand_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    told = []
    python = drawing_python(told.append)
    assert python.is_relative_to(tmp_path / "cache")
    assert told[-1].startswith("figures: install matplotlib")
    (svg,) = draw_figures(python, [FIGURES["bars"]()], tmp_path / "drawn")
    assert svg.exists()
    told.clear()
    assert (drawing_python(told.append), told) == (python, []), "the second time it is there"


def test_what_could_not_be_drawn_is_said_and_costs_the_pictures_alone(monkeypatch, capsys):
    def fails(*_):
        raise CannotDrawError("no figures: out of memory")

    monkeypatch.setattr(commands_figures, "draw", fails)
    monkeypatch.setattr(commands_figures, "experiment_of", lambda _: None)
    assert draw_pictures(None, None, Path(sys.executable)) == []
    assert capsys.readouterr().err == "no figures: out of memory\n"


def test_without_what_draws_there_are_no_pictures_and_nothing_is_asked():
    assert draw_pictures(None, None, None) == []
