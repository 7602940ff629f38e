import argparse
import json
import re
from dataclasses import replace

import pytest

from gilscope.toolkit.builds.pairing import compare_builds as unfair
from gilscope.toolkit.commands import compare
from gilscope.toolkit.errors import ToolkitError, UnknownNameError
from gilscope.toolkit.model import Cell, Note
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.fakes import MACHINE, RunMaker, make_run
from tests.report.shifted import shifted_run
from tests.store.test_shared_values import part_of


def cell(runner, workers=1, build="3.14"):
    return Cell(workload="w", runner=runner, workers=workers, build=build)


def simple_run(label, serial=1.0, threads=0.5, *, twin=True, extra=None, rounds=8):
    maker = RunMaker(noise=0.001, rounds=rounds)
    maker.measure(cell("serial"), serial)
    maker.measure(cell("threads", 2), threads)
    if twin:
        maker.twin(cell("serial"), serial)
    if extra:
        maker.measure(cell(extra), 1.0)
    return maker.run(("3.14",), label=label)


BUILDS = ("--builds", "3.14,3.14t")


def two_builds(serial=1.0, threads=0.8, *, noise=0.001, rounds=8, extra=None):
    """Return a run in which the second build takes these times, and the first 1 and 0.5 seconds."""
    maker = RunMaker(noise=noise, rounds=rounds)
    for build, alone, both in (("3.14", 1.0, 0.5), ("3.14t", serial, threads)):
        maker.measure(cell("serial", 1, build), alone)
        maker.twin(cell("serial", 1, build), alone)
        maker.measure(cell("threads", 2, build), both)
    if extra:
        maker.measure(cell(extra), 1.0)
    return maker.run(("3.14", "3.14t"))


@pytest.fixture
def runs(monkeypatch):
    """Stored runs by label."""
    stored = {"A": simple_run("A"), "B": simple_run("B", threads=0.8, extra="asyncio"), "full": make_run(),
              "both": two_builds()}
    monkeypatch.setattr(compare, "find_label", lambda label: label)
    monkeypatch.setattr(compare, "load_run", stored.__getitem__)
    return stored


def call(*argv):
    parser = argparse.ArgumentParser()
    compare.add_parser(parser.add_subparsers())
    args = parser.parse_args(["compare", "--full", *argv])
    return args.run(args)


def answer(*argv):
    parser = argparse.ArgumentParser()
    compare.add_parser(parser.add_subparsers())
    args = parser.parse_args(["compare", *argv])
    return args.run(args)


def test_two_runs_have_ratios_with_intervals_and_no_verdict(runs, capsys):
    assert call("A", "B") == 0
    out = capsys.readouterr().out
    assert re.search(r"threads +2 +529 ms .* +8\d\d ms .* +0\.6\d+x \[0\.\d+, 0\.\d+\] *$", out, re.MULTILINE)
    said = " ".join(out.split())
    assert ("2 cells compared: in the median 0.79x. 1 not compared. No verdict: the machine may have changed between "
            "the runs. `gilscope compare A B --again` measures both in turn, and judges.") in said
    judged = said.replace("released ones are faster", "")
    assert not re.search("verdict[^:]|faster|slower|cannot tell|noise floor", judged)
    call("A", "B", "--json")
    values = json.loads(capsys.readouterr().out)
    seen = [each["ratio"] for each in values["cells"] if each["ratio"]]
    assert [(each["verdict"], each["between"], each["floor"], each["rounds_to_tell"]) for each in seen] == [
        (None, None, None, None)] * 2
    assert all(each["lo"] < each["ratio"] < each["hi"] for each in seen)
    assert [each["unjudged"] for each in values["cells"]] == ["two runs", "two runs", None]
    assert values["in_short"][-1].startswith("No verdict: ")


def test_two_runs_that_are_unlike_have_no_verdict_either(runs, capsys):
    """Neither a whole machine nor one workload that moved is told from a change of the code."""
    changed = {("sort", build): 2.0 for build in ("3.14", "3.14t")}
    runs["A"] = shifted_run("A")
    for runs["B"] in (shifted_run("B", 1.4, seed=2), shifted_run("B", changed=changed, seed=2)):
        call("A", "B", "--json")
        assert {each["ratio"]["verdict"] for each in json.loads(capsys.readouterr().out)["cells"]} == {None}


def test_answer_of_two_runs_begins_with_the_cell_that_moved_most(runs, capsys):
    assert answer("A", "B") == 0
    out = capsys.readouterr().out
    assert " ".join(out.split()).startswith(
        "B against A (ratio above 1: B is faster): 2 cells compared: in the median 0.79x. 1 not compared. ")
    head, _, *rows = out[out.index("workload"):].splitlines()[:4]
    assert [head.split(), *(row.split()[:3] for row in rows)] == [
        ["workload", "model", "N", "ratio"], ["w", "threads", "2"], ["w", "serial", "1"]]
    assert "No verdict: the machine may have changed" in out


@pytest.mark.parametrize("limit", ["5%", "150%"])
def test_fail_on_judges_no_two_runs_and_says_what_does(runs, capsys, limit):
    assert call("A", "B", "--fail-on", limit, "--json") == 3
    captured = capsys.readouterr()
    gate = json.loads(captured.out)["gate"]
    assert (gate["judged"], gate["untold"], gate["one_sided"]) == (0, 2, 1)
    assert captured.err == (f"gilscope: --fail-on judges no two separate runs: `gilscope compare A B --again --fail-on "
                            f"{limit}` measures both sides in turn\n")


def test_run_and_its_own_first_rounds_are_not_judged(runs):
    run = load_run(ROOT / "results" / "example" / "own-function")
    runs["whole"], runs["part"] = run, replace(part_of(run, 3), label="part")
    for labels in (("whole", "part"), ("part", "whole")):
        with pytest.raises(ToolkitError, match=r"share raw values: .* not independent, so nothing is judged"):
            call(*labels)


def test_cell_that_only_one_run_has_is_listed(runs, capsys):
    call("A", "B")
    assert "asyncio of w (1 cell): only in B" in " ".join(capsys.readouterr().out.split())


def test_cells_that_one_side_alone_has_are_one_line(runs, capsys):
    maker = RunMaker(noise=0.001)
    for workload in ("v", "w", "x"):
        for runner in ("serial", "threads"):
            for workers in (1, 2):
                maker.measure(replace(cell(runner, workers), workload=workload), 1.0)
    runs["B"] = maker.run(("3.14",), label="B")
    call("A", "B")
    said = " ".join(capsys.readouterr().out.split("Not compared")[1].split())
    assert said.startswith("serial and threads of v, w and x (10 cells): only in B In short")


def test_builds_of_one_run(runs, capsys):
    assert call("full", "--builds", "3.14,3.14t") == 0
    out = capsys.readouterr().out
    assert "example: 3.14t against 3.14" in out
    assert out.count("WARNING") == 2   # of the run, and on PGO
    assert re.search(r"serial +1 +400 ms .* 416 ms .* 0\.96\dx \[0\.96\d, 0\.96\d\] +slower", out)


def test_builds_that_were_not_built_alike_have_a_banner(runs, capsys):
    run = runs["full"]
    runs["full"] = replace(run, builds=tuple(replace(b, pgo=b.label == "3.14") for b in run.builds))
    call("full", "--builds", "3.14,3.14t")
    assert re.search("WARNING:.*PGO", capsys.readouterr().out)


def test_models_of_one_run_have_no_banner_on_a_pair_of_builds(runs, capsys):
    assert call("full", "--models", "threads,subinterpreters") == 0
    out = capsys.readouterr().out
    assert out.count("WARNING") == 2   # of the run, and on PGO
    assert re.search(r"3\.13 +2 +46\d ms .* 24\d ms .* 1\.9\d+x", out)


@pytest.mark.parametrize(("limit", "code"), [("5%", 1), ("50%", 1), ("80%", 0)])   # 0.8 / 0.5 is 60 % slower
def test_fail_on_wants_the_whole_interval_past_the_limit(runs, capsys, limit, code):
    assert call("both", *BUILDS, "--fail-on", limit) == code
    assert ("w/runner=threads/workers=2" in capsys.readouterr().err) == bool(code)


def test_fail_on_does_not_pass_where_nothing_can_be_said(runs, capsys):
    runs["both"] = two_builds(rounds=2)
    assert call("both", *BUILDS, "--fail-on", "5%") == 3
    assert "judged no cell: measure more rounds" in capsys.readouterr().err


def test_fail_on_neither_fails_nor_passes_within_the_noise(runs, capsys):
    # Processes differ by 30 %: neither 20 % slower nor no difference is significant.
    runs["both"] = two_builds(threads=0.6, noise=0.3)
    assert call("both", *BUILDS, "--fail-on", "5%") == 3
    captured = capsys.readouterr()
    assert "same  " not in captured.out
    assert "2 not judged: 2 are too noisy" in captured.err


def test_fail_on_says_how_many_cells_it_did_not_judge(runs, capsys):
    runs["both"] = two_builds(extra="asyncio")
    assert call("both", *BUILDS, "--fail-on", "150%") == 0
    assert "--fail-on 150 %: 0 slower by more, 2 not; 1 not judged: 1 has values on one side only" in (
        capsys.readouterr().err)


def test_margin_decides_what_is_the_same(runs, capsys):
    runs["both"] = two_builds(threads=0.505)   # 1 % slower, beyond the floor of one worker
    for margin, word in (("20%", "same"), ("0.01%", "cannot tell")):
        call("both", *BUILDS, "--margin", margin)
        assert re.search(rf"serial +1 .* {word}", capsys.readouterr().out)


def test_gate_that_judged_nothing_does_not_pass(runs, capsys):
    maker = RunMaker()
    for runner in ("serial", "threads"):
        maker.measure(cell(runner), 1.0, starved=8)
    runs["A"] = maker.run(("3.14",), label="A")
    assert call("A", "--models", "serial,threads", "--fail-on", "5%") == 3
    assert call("A", "--models", "serial,threads") == 0
    assert "No cell could be compared" in capsys.readouterr().out


def cautioned(label):
    """A run with a note, and a cell that stopped after four rounds."""
    run = simple_run(label, rounds=8)
    serial, threads, twin = run.measurements
    return replace(run, looks=1, notes=(Note(text=f"{label} was interrupted"),), measurements=(
        serial, replace(threads, observations=threads.observations[:4]), twin))


@pytest.mark.parametrize(("argv", "prefix"), [
    (["A", "--models", "serial,threads"], ""), (["A", "B"], ""), (["A", "quiet"], "A: ")])
def test_comparison_has_the_cautions_of_its_runs_reports(runs, capsys, argv, prefix):
    runs.update(A=cautioned("A"), B=cautioned("B"), quiet=simple_run("quiet"))
    call(*argv, "--json")
    notes = json.loads(capsys.readouterr().out)["notes"]
    call(*argv)
    text = " ".join(capsys.readouterr().out.split())
    own = "A was interrupted" if len(argv) > 2 else "A: A was interrupted"
    before = ["these builds lack PGO", own]
    for said in before:
        assert f"WARNING: {said}" in text
    for said in (*before, f"{prefix}cells with a clear answer got fewer rounds than open ones: 4 to 8"):
        assert said in text
        assert [note for note in notes if note.startswith(said)]


def test_differences_between_builds_that_are_not_compared_are_no_caution(runs, capsys):
    run = runs["full"]
    builds = {build.label: build for build in run.builds}
    odd = replace(builds["3.13"], debug=True)
    differing = unfair(odd, builds["3.14"])
    runs["full"] = replace(run, builds=(odd, builds["3.14"], builds["3.14t"]), notes=differing)
    said = differing[-1].text
    for argv, there in ((("--builds", "3.13,3.14"), True), (("--builds", "3.14,3.14t"), False),
                        (("--models", "serial,threads"), False)):
        call("full", *argv)
        assert (said in " ".join(capsys.readouterr().out.split())) is there


def test_cannot_tell_goes_by_the_wider_intervals(runs, capsys):
    call("both", *BUILDS)
    assert ("cannot tell: by the wider intervals of verdicts, a difference above 3 % is possible, and none is "
            "significant.") in " ".join(capsys.readouterr().out.split())


def test_faster_never_fails(runs, capsys):
    assert call("both", "--builds", "3.14t,3.14", "--fail-on", "0%") == 0


def test_clock_can_be_chosen(runs, capsys):
    call("A", "B", "--clock", "cpu")
    out = capsys.readouterr().out
    assert "over rounds; CPU time." in out
    assert "wall time" not in out


def test_markdown(runs, capsys):
    call("A", "B", "--markdown")
    assert "| threads | 2 | 529 ms" in capsys.readouterr().out


@pytest.mark.parametrize(("argv", "message"), [
    (["A"], "give a second label"),
    (["A", "B", "full"], "one or two labels"),
    (["A", "B", "--builds", "3.13,3.14"], "give one label"),
])
def test_request_that_makes_no_sense_is_refused(runs, argv, message):
    with pytest.raises(ToolkitError, match=message):
        call(*argv)


def test_unknown_build_is_refused_with_those_there_are(runs):
    with pytest.raises(UnknownNameError, match=r"no build '3\.15'; it has 3\.13, 3\.14, 3\.14t"):
        call("full", "--builds", "3.14,3.15")


def test_runs_without_a_common_cell_are_refused(runs):
    maker = RunMaker()
    maker.measure(replace(cell("serial"), workload="other"), 1.0)
    runs["B"] = maker.run(("3.14",), label="B")
    with pytest.raises(UnknownNameError, match="no measured cell in common"):
        call("A", "B")


@pytest.mark.parametrize("text", ["x", "-5", "inf", "nan", "%"])
def test_fail_on_wants_a_percentage(runs, text, capsys):
    with pytest.raises(SystemExit):
        call("A", "B", f"--fail-on={text}")
    assert "write it like 5%" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["3.14", "a,a", "a,b,c", ",b"])
def test_pair_wants_two_different_names(runs, text, capsys):
    with pytest.raises(SystemExit):
        call("full", "--builds", text)
    assert "write it like A,B" in capsys.readouterr().err


def test_other_differences_of_two_runs_are_named():
    first, second = replace(simple_run("A"), options={"selection": {"size": "small"}}), simple_run("B")
    (build,) = second.builds
    second = replace(
        second, machine=replace(MACHINE, cores=4), builds=(replace(build, version="3.14.1"),),
        options={"selection": {"size": "large"}},
    )
    texts = [note.text for note in compare.differences(first, second)]
    assert texts == [
        "different machines: Made-up CPU (8 cores) and Made-up CPU (4 cores)",
        "3.14 is 3.14.0 (/opt/3.14/bin/python) in A, 3.14.1 (/opt/3.14/bin/python) in B",
        "different sizes of the workloads: small and large",
    ]
    assert compare.differences(first, first) == []


def test_run_is_not_compared_with_itself(runs):
    with pytest.raises(ToolkitError, match="A is named twice; compare parts of one run"):
        call("A", "A")
