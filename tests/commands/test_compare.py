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


@pytest.fixture
def runs(monkeypatch):
    """Stored runs by label."""
    stored = {"A": simple_run("A"), "B": simple_run("B", threads=0.8, extra="asyncio"), "full": make_run()}
    monkeypatch.setattr(compare, "find_label", lambda label: label)
    monkeypatch.setattr(compare, "load_run", stored.__getitem__)
    return stored


def call(*argv):
    parser = argparse.ArgumentParser()
    compare.add_parser(parser.add_subparsers())
    args = parser.parse_args(["compare", "--full", *argv])
    return args.run(args)


def test_two_runs_are_compared_with_the_drift_named(runs, capsys):
    assert call("A", "B") == 0
    out = capsys.readouterr().out
    assert re.search(r"threads +2 +529 ms .* +8\d\d ms .* +0\.6\d+x \[.*\] +slower", out)
    assert "rounds of the two runs are not paired" in " ".join(out.split())


def test_run_and_its_own_first_rounds_are_not_judged(runs):
    run = load_run(ROOT / "results" / "example" / "own-function")
    runs["whole"], runs["part"] = run, replace(part_of(run, 3), label="part")
    for labels in (("whole", "part"), ("part", "whole")):
        with pytest.raises(ToolkitError, match=r"share raw values: .* not independent, so nothing is judged"):
            call(*labels)


def test_cell_that_only_one_run_has_is_listed(runs, capsys):
    call("A", "B")
    assert "asyncio on 3.14 (N = 1) of w: only in B" in " ".join(capsys.readouterr().out.split())


def test_cells_that_one_side_alone_has_are_one_line(runs, capsys):
    maker = RunMaker(noise=0.001)
    for workload in ("v", "w", "x"):
        for runner in ("serial", "threads"):
            for workers in (1, 2):
                maker.measure(replace(cell(runner, workers), workload=workload), 1.0)
    runs["B"] = maker.run(("3.14",), label="B")
    call("A", "B")
    said = " ".join(capsys.readouterr().out.split("Not compared")[1].split())
    assert said.startswith("all 8 cells of v and x; "
                           "serial on 3.14 (N = 2), threads on 3.14 (N = 1) of w: only in B In short")


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


@pytest.mark.parametrize(("limit", "code"), [
    ("5%", 1), ("10%", 1), ("150%", 0),   # 0.8 / 0.5 is 60 % slower; one workload may be off by 34 % between runs
])
def test_fail_on_wants_the_whole_interval_past_the_limit(runs, capsys, limit, code):
    assert call("A", "B", "--fail-on", limit) == code
    assert ("w/runner=threads/workers=2" in capsys.readouterr().err) == bool(code)


def test_fail_on_does_not_pass_where_nothing_can_be_said(runs, capsys):
    for label in ("A", "B"):
        runs[label] = simple_run(label, rounds=2)
    assert call("A", "B", "--fail-on", "5%") == 3
    assert "judged no cell" in capsys.readouterr().err


def test_fail_on_neither_fails_nor_passes_within_the_floor(runs, capsys):
    # The A/A arm is off by 30 %: 20 % slower means nothing, and neither does no difference.
    maker = RunMaker(noise=0.001)
    maker.measure(cell("serial"), 1.0)
    maker.twin(cell("serial"), 1.3)
    maker.measure(cell("threads", 2), 0.6)
    runs["B"] = maker.run(("3.14",), label="B")
    assert call("A", "B", "--fail-on", "5%") == 3
    captured = capsys.readouterr()
    assert "same  " not in captured.out
    assert "2 not judged: 2 are too noisy" in captured.err
    assert call("A", "B", "--fail-on", "31%") == 0


def test_fail_on_says_how_many_cells_it_did_not_judge(runs, capsys):
    assert call("A", "B", "--fail-on", "150%") == 0
    assert "--fail-on 150 %: 0 slower by more, 2 not; 1 not judged: 1 has values on one side only" in (
        capsys.readouterr().err)


def test_margin_decides_what_is_the_same(runs, capsys):
    runs["B"] = simple_run("B", threads=0.505)   # 1 % slower, beyond the floor of one worker
    for margin, word in (("20%", "same"), ("0.01%", "cannot tell")):
        call("A", "B", "--margin", margin)
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
    before = ["these builds have no profile-guided optimization", own]
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
    call("A", "B")
    assert ("cannot tell: by the wider intervals of verdicts, a difference above 3 % is possible, and none above the "
            "noise floor is significant.") in " ".join(capsys.readouterr().out.split())


def test_faster_never_fails(runs, capsys):
    assert call("B", "A", "--fail-on", "0%") == 0


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


def test_what_it_costs_that_two_runs_were_not_measured_together_is_said_in_numbers(runs, capsys):
    call("A", "B")
    said = " ".join(capsys.readouterr().out.split())
    both = r"intervals of ±([\d.]+) %, where one run with both would have ±([\d.]+) %"
    seen = re.search(f"not measured together: {both}", said)
    assert float(seen[1]) > 3 * float(seen[2])   # the machine of these runs moves by far more than their processes
    assert "`gilscope compare A B --again`" in said
    call("full", "--builds", "3.14,3.14t")
    assert "not measured together" not in capsys.readouterr().out


def test_two_runs_in_which_everything_moved_alike_are_not_judged(runs, capsys):
    runs["A"], runs["B"] = shifted_run("A"), shifted_run("B", 1.4, seed=2)
    assert call("A", "B", "--fail-on", "5%") == 3
    captured = capsys.readouterr()
    said = " ".join(captured.out.split())
    assert "most workloads moved the same way, in the median to 0.71x" in said
    assert "The builds look the same in both runs" in said
    assert "24 cells compared: 24 cannot tell (24 from a common shift)" in said
    assert "24 cannot be told from a common shift" in captured.err
    assert "use --again, which measures both sides in turn" in captured.err


def test_shift_of_half_of_the_workloads_is_not_called_that_of_most(runs, capsys):
    # The other half moved somewhat, by chance: with this seed it passes for a shift.
    changed = {(workload, build): 1.3 for workload in ("primes", "sort") for build in ("3.14", "3.14t")}
    runs["A"], runs["B"] = shifted_run("A"), shifted_run("B", changed=changed, seed=5)
    call("A", "B")
    said = " ".join(capsys.readouterr().out.split())
    assert re.search("the workloads may have moved together, in the median to 0.8[5-8]x", said)
    assert "most workloads moved the same way" not in said
    call("A", "B", "--json")
    assert [each["of_most"] for each in json.loads(capsys.readouterr().out)["shifts"]] == [False]


def test_what_moved_more_than_the_rest_is_judged_with_and_without_the_shift(runs, capsys):
    changed = {("sort", build): 2.0 for build in ("3.14", "3.14t")}
    runs["A"], runs["B"] = shifted_run("A"), shifted_run("B", 1.1, changed=changed, seed=2)
    assert call("A", "B", "--fail-on", "5%", "--json") == 1
    captured = capsys.readouterr()
    values = json.loads(captured.out)
    by_workload = {each["sample"]["workload"]: each for each in values["cells"]}
    changed, other = by_workload["sort"], by_workload["primes"]
    assert (changed["ratio"]["verdict"], changed["unjudged"]) == ("slower", None)
    assert changed["without_shift"]["ratio"] == pytest.approx(0.5, rel=0.03)
    assert (other["ratio"]["verdict"], other["unjudged"]) == ("cannot tell", "common shift")
    assert other["without_shift"]["ratio"] == pytest.approx(1.0, rel=0.03)
    assert {each["clock"] for each in values["shifts"]} == {"wall", "cpu"}
    shift = values["shifts"][0]
    assert shift["basis"] == "workloads"
    assert shift["ratio"] == pytest.approx(1 / 1.1, rel=0.03)
    assert shift["lo"] < shift["ratio"] < shift["hi"]
    assert shift["workloads"][0]["workload"] == "sort"
    # Of the other 18 cells, the wall times are too noisy to exclude 5 % in any case.
    assert (values["gate"]["untold_by_shift"], values["gate"]["untold"]) == (6, 18)


def test_builds_that_differ_between_two_runs_may_be_why_they_moved(runs, capsys):
    first, second = shifted_run("A"), shifted_run("B", 1.4, seed=2)
    runs["A"], runs["B"] = first, replace(second, builds=tuple(replace(each, pgo=True) for each in second.builds))
    for label, same in (("B", False), ("C", True)):
        runs["C"] = replace(second, label="C")
        call("A", label, "--json")
        assert {each["same_builds"] for each in json.loads(capsys.readouterr().out)["shifts"]} == {same}
    call("A", "B")
    assert "The machine may have changed, or the builds" in " ".join(capsys.readouterr().out.split())


def test_one_workload_that_moved_is_judged_with_a_typical_shift(runs, capsys):
    runs["A"], runs["B"] = (shifted_run(label, times, workloads=("sort",), seed=seed)
                            for label, times, seed in (("A", 1.0, 1), ("B", 1.1, 2)))
    assert call("A", "B", "--fail-on", "5%", "--json") == 3
    values = json.loads(capsys.readouterr().out)
    assert {each["unjudged"] for each in values["cells"]} == {"few workloads"}
    assert {each["basis"] for each in values["shifts"]} == {"typical"}
    runs["B"] = shifted_run("B", 2.0, workloads=("sort",), seed=2)
    assert call("A", "B", "--fail-on", "5%") == 1


def test_runs_that_did_not_move_are_judged_as_ever(runs, capsys):
    changed = {("sort", "3.14"): 1.5}
    runs["A"], runs["B"] = shifted_run("A"), shifted_run("B", changed=changed, seed=2)
    assert call("A", "B", "--json") == 0
    values = json.loads(capsys.readouterr().out)
    assert values["shifts"] == []
    assert {(each["sample"]["workload"], each["sample"]["build"]) for each in values["cells"]
            if each["ratio"]["verdict"] == "slower"} == {("sort", "3.14")}
