"""`gilscope compare --again`: what can be measured again, what cannot and why, and once for real."""

import argparse
import subprocess
import sys
from dataclasses import replace

import pytest

from gilscope.toolkit.builds.find import inspect_new
from gilscope.toolkit.commands import compare
from gilscope.toolkit.commands.run import compare_again
from gilscope.toolkit.commands.run.compare_again import RemeasureRequest, measure_again
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.cells import Selection
from gilscope.toolkit.measure.child.spec import UserTarget
from gilscope.toolkit.measure.settings import RunRequest, Settings
from gilscope.toolkit.model import Phase
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.fakes import make_build, make_run
from tests.patience import PATIENCE

SETTINGS = Settings(rounds=4, values=2, warmups=0, min_seconds=0.01, timeout=60.0)
SELECTION = Selection(workloads=("primes",), user=None, models=("threads",), workers=(2,), phases=(Phase.STEADY,),
                      size="small")
ASKED = RemeasureRequest(label=None, rounds=None, budget=None, path=None)
OWN = UserTarget(function="work:f", payload="1", tasks=2)


class Reached(Exception):  # noqa: N818 - it is no error
    """Nothing stood in the way of measuring."""


@pytest.fixture
def host():
    return inspect_new(f"host={sys.executable}")[2]


def run(label, *builds, paths=(), packages=(), **selection):
    request = RunRequest(selection=replace(SELECTION, **selection), settings=SETTINGS, units={}, paths=paths,
                         packages=packages)
    return replace(make_run(), label=label, builds=builds, options=request.to_options())


@pytest.fixture
def prepared(monkeypatch):
    """The sides that would be measured: (labels of builds, paths, packages) of each."""
    sides = []

    def prepare(selection, builds, *, paths, packages, **_):
        sides.append((tuple(build.label for build in builds), tuple(map(str, paths)), packages))
        if len(sides) == 2:
            raise Reached

    monkeypatch.setattr(compare_again, "prepare", prepare)
    return sides


def test_sides_whose_builds_have_one_name_are_told_apart_by_their_runs(host, prepared, tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    runs = [run(label, host, paths=(str(tmp_path / place),), user=OWN, workloads=())
            for label, place in (("before", "old"), ("after", "new"))]
    with pytest.raises(Reached):
        measure_again(*runs, ASKED, tmp_path)
    assert prepared == [((f"host-{label}",), (str(tmp_path / place),), ())
                        for label, place in (("before", "old"), ("after", "new"))]


def test_only_builds_of_two_runs_are_a_pair_whatever_their_names(host, prepared, tmp_path):
    runs = [run("A", replace(host, label="old"), packages=("x==1",)), run("B", replace(host, label="new"))]
    with pytest.raises(Reached):
        measure_again(*runs, ASKED, tmp_path)
    assert [side[0] for side in prepared] == [("old",), ("new",)]


def test_code_that_changed_in_place_is_taken_from_the_folder_that_is_named(host, prepared, tmp_path, monkeypatch):
    runs = [run(label, host, paths=(str(tmp_path),), user=OWN, workloads=()) for label in ("A", "B")]
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    with pytest.raises(ToolkitError, match=r"both sides would be the same now.*git worktree add \.\./before COMMIT"):
        measure_again(*runs, ASKED, tmp_path)
    with pytest.raises(ToolkitError, match=r"has the other side's code: name the folder with the code of A"):
        measure_again(*runs, replace(ASKED, path=tmp_path), tmp_path)
    (tmp_path / "before").mkdir()
    with pytest.raises(ToolkitError, match=r"git worktree add \.\./before2 COMMIT"):   # what is there may be now's
        measure_again(*runs, ASKED, tmp_path)
    with pytest.raises(Reached):
        measure_again(*runs, replace(ASKED, path=tmp_path / "before"), tmp_path)
    assert [side[1] for side in prepared] == [(str(tmp_path / "before"),), (str(tmp_path),)]
    with pytest.raises(ToolkitError, match="there is no such folder"):
        measure_again(*runs, replace(ASKED, path=tmp_path / "gone"), tmp_path)


def test_one_interpreter_and_a_workload_of_ours_is_nothing_to_compare(host, tmp_path):
    with pytest.raises(ToolkitError, match="both sides would be the same now"):
        measure_again(run("A", host), run("B", host), ASKED, tmp_path)


def test_interpreter_that_is_gone_or_another_one_now_is_named(host, tmp_path):
    gone = replace(host, executable=str(tmp_path / "python"))
    with pytest.raises(ToolkitError, match=r"host of A is gone from .*python, so that side"):
        measure_again(run("A", gone), run("B", host), ASKED, tmp_path)
    other = replace(host, version="3.13.0a1")
    with pytest.raises(ToolkitError, match=r"host of B was Python 3\.13\.0a1.*there is") as caught:
        measure_again(run("A", host), run("B", other), ASKED, tmp_path)
    assert caught.value.exit_code == 2   # as of every other refusal: nothing was begun


@pytest.mark.parametrize(("changed", "said"), [
    ({"size": "large"}, "size 'small' and 'large'"),
    ({"user": OWN, "workloads": ()}, "function of yours none and 'work:f'"),
    ({"workloads": ("countdown",)}, "no workloads in common"),
    ({"models": ("processes-spawn",)}, "no models in common"),
])
def test_other_work_is_nothing_to_measure_again(host, changed, said, tmp_path):
    with pytest.raises(ToolkitError, match=said):
        measure_again(run("A", host), run("B", host, **changed), ASKED, tmp_path)


def test_builds_without_a_common_name_are_no_pairs(tmp_path):
    one, other = run("A", make_build("3.13"), make_build("3.13t")), run("B", make_build("3.14"))
    with pytest.raises(ToolkitError, match=r"A has 3\.13, 3\.13t and B has 3\.14: no build has the same name"):
        measure_again(one, other, ASKED, tmp_path)


def test_side_that_cannot_be_prepared_is_named(host, monkeypatch, tmp_path):
    def prepare(*_, **__):
        raise ToolkitError("cannot import work")

    monkeypatch.setattr(compare_again, "prepare", prepare)
    with pytest.raises(ToolkitError, match="the side of A cannot be measured again: cannot import work"):
        measure_again(run("A", host, packages=("x",)), run("B", host), ASKED, tmp_path)


def call(*argv):
    parser = argparse.ArgumentParser()
    compare.add_parser(parser.add_subparsers())
    args = parser.parse_args(["compare", *argv])
    return args.run(args)


@pytest.mark.parametrize(("argv", "said"), [
    (["A", "--again"], "give two labels"), (["A", "B", "--rounds", "3"], "--rounds goes with --again"),
    (["A", "B", "--path", "x"], "--path goes with --again"),
])
def test_options_that_make_no_sense_are_refused(argv, said):
    with pytest.raises(ToolkitError, match=said):
        call(*argv)


ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "GILSCOPE_RESULTS": "results"}


@pytest.mark.slow
@pytest.mark.quiet   # beside other programs its cells are starved, and judged by nobody
def test_changed_function_is_measured_again_in_turn(tmp_path):
    for name, times in (("old", 1), ("new", 3)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "work.py").write_text(f"def f(n):\n    return sum(range({times} * n))\n")
    for label in ("old", "new"):
        gilscope(tmp_path, "run", "work:f", "--payload", "300000", "--path", label, "--build", f"host={sys.executable}",
                 "--models", "serial", "--workers", "1", "--quick", "--rounds", "3", "--label", label)
    out = gilscope(tmp_path, "compare", "old", "new", "--again", "--rounds", "4", "--label", "both")
    assert "both: host-new against host-old, measured in turn" in out
    assert "slower" in out
    assert "are not paired" not in " ".join(out.split())
    done = load_run(tmp_path / "results" / "both")
    assert [build.label for build in done.builds] == ["host-old", "host-new"]
    assert done.options["again"] == ["old", "new"]
    refused = subprocess.run(
        [sys.executable, "-m", "gilscope", "run", "--resume", "both", "--rounds", "9"], cwd=tmp_path, text=True,
        capture_output=True, check=False, env=ENVIRONMENT)
    assert "was made by `compare --again`" in refused.stderr


def gilscope(folder, *argv):
    done = subprocess.run([sys.executable, "-m", "gilscope", *argv], cwd=folder, text=True, capture_output=True,
                          check=False, timeout=PATIENCE, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout
