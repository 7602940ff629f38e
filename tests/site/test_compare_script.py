"""What the script of the comparing page says of two runs, against `gilscope compare`, without a browser."""

import dataclasses
import json
import shutil
import subprocess

import pytest

from gilscope.toolkit.commands.compare import differences, run_notes, run_remarks
from gilscope.toolkit.publish import without_traces
from gilscope.toolkit.report.comparison import TWO_RUNS, comparison_document
from gilscope.toolkit.report.document import Banner, Lines, Table, with_scope
from gilscope.toolkit.report.table import compare_runs
from gilscope.toolkit.report.wording import entry_text, mark_text
from gilscope.toolkit.site.pages.compare import compare_run, compare_values
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.fakes import in_sessions
from tests.report.shifted import shifted_run
from tests.site.made import EXAMPLE
from tests.site.test_common_pages import known

pytestmark = pytest.mark.newest
NODE = shutil.which("node")
SCRIPT = ROOT / "toolkit" / "site" / "assets" / "compare.js"
# The page is not there: only the report of two runs is asked for.
PROGRAM = """
const [{ known, runs }] = [JSON.parse(require("fs").readFileSync(0, "utf8"))];
global.window = {};
global.document = { getElementById: () => ({ textContent: JSON.stringify(known), querySelector: () => null,
  addEventListener: () => null }) };
const source = require("fs").readFileSync(process.argv[1], "utf8");
const asked = "if (!known.runs.length) return;";
if (!source.includes(asked)) throw new Error("the script begins in another way");
eval(source.replace(asked, "window.report = report; return;"));
console.log(JSON.stringify(window.report(...runs)));
"""


def by_script(first, second):
    """Return warnings, tables and lists as the script makes them."""
    sides = [compare_run(*known(run, "here", n), {}) for n, run in enumerate((first, second), 1)]
    values = {"known": compare_values([], []), "runs": sides}
    done = subprocess.run([NODE, "-e", PROGRAM, str(SCRIPT)], input=json.dumps(values), text=True,
                          capture_output=True, check=False)
    assert not done.stderr
    found = {"banners": [], "tables": {}, "lists": {}}
    for section in json.loads(done.stdout):
        if section["kind"] == "banner":
            found["banners"].append(section["text"])
        if section["kind"] == "lines":
            found["lists"][section["title"]] = section["items"]
        if section["kind"] == "table":
            found["tables"][section["title"]] = [[title for title, _ in section["columns"]], *(
                [text + " ".join(map(mark_text, marks[0] if marks else [])) for text, marks in (
                    (entry[0], entry[2:]) for entry in row)] for row in section["rows"]), section["footnotes"]]
    return found


def by_command(first, second):
    """Return the same as `gilscope compare` makes them."""
    document = with_scope(comparison_document(
        "", compare_runs(first, second), baseline=first.label, sample=second.label,
        notes=[*differences(first, second), *run_notes(first, second)], remarks=run_remarks(first, second)), TWO_RUNS)
    found = {"banners": [], "tables": {}, "lists": {}}
    for section in document.sections:
        match section:
            case Banner():
                found["banners"].append(section.text)
            case Table():
                found["tables"][section.heading] = [
                    [column.title for column in section.columns],
                    *([entry_text(entry) for entry in row] for row in section.rows), [*section.footnotes]]
            case Lines():
                found["lists"][section.heading] = [*section.items]
    return found


def example(label):
    return without_traces(load_run(EXAMPLE / label))


def other_builds(run):
    return dataclasses.replace(run, builds=tuple(dataclasses.replace(each, lto=True) for each in run.builds))


def sessions_run(label, *, gone=False):
    """Return a run of three sessions; in the last of them, a cell has no round if it is `gone`."""
    run = in_sessions(shifted_run(label, rounds=12), (0, 4, 8))
    cell = next(each.cell for each in run.measurements if each.cell.workers > 1)
    return dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=each.observations[:8]) if gone and each.cell == cell else each
        for each in run.measurements))


def early(run):
    """Return the run with interim looks, in which a cell stopped after four rounds."""
    first, *others = run.measurements
    return dataclasses.replace(run, looks=1, measurements=(
        dataclasses.replace(first, observations=first.observations[:4]), *others))


def half_slower(label):
    """Return a run in which two of four workloads are slower, and the others by chance somewhat, too."""
    return shifted_run(label, changed={(workload, build): 1.3 for workload in ("primes", "sort")
                                       for build in ("3.14", "3.14t")}, seed=5)


PAIRS = {
    "no shift": lambda: (shifted_run("A"), shifted_run("B", seed=2)),
    "all slower": lambda: (shifted_run("A"), shifted_run("B", 1.4, seed=2)),
    "one slower still": lambda: (shifted_run("A"), shifted_run("B", 1.1, changed={("sort", "3.14"): 2.0}, seed=2)),
    "half of them slower": lambda: (shifted_run("A"), half_slower("B")),
    "other builds": lambda: (shifted_run("A"), other_builds(shifted_run("B", 1.4, seed=2))),
    "one workload": lambda: (shifted_run("A", workloads=("sort",)), shifted_run("B", 1.1, workloads=("sort",), seed=2)),
    "two workloads": lambda: (shifted_run("A", workloads=("sort", "primes")),
                              shifted_run("B", 1.4, workloads=("sort", "primes"), seed=2)),
    "two of four noisy": lambda: (shifted_run("A", noisy=("sort", "regex")),
                                  shifted_run("B", 1.2, noisy=("sort", "regex"), seed=2)),
    "lacking a session": lambda: (sessions_run("A"), sessions_run("B", gone=True)),
    "stopped early": lambda: (dataclasses.replace(shifted_run("A"), looks=1), early(shifted_run("B", seed=2))),
    "examples": lambda: (example("first-look"), example("second-worker")),
}


@pytest.mark.skipif(NODE is None, reason="there is no Node.js here")
@pytest.mark.parametrize("pair", PAIRS)
def test_script_says_of_two_runs_what_the_command_says(pair):
    first, second = PAIRS[pair]()
    expected = by_command(first, second)
    assert by_script(first, second) == expected
    shift = [each for each in expected["banners"] if "may have changed" in each]
    assert bool(shift) == (pair not in {"no shift", "lacking a session", "stopped early"})
    assert any(table[-1] for table in expected["tables"].values()) == (pair in {"lacking a session", "examples"})
    assert any("got fewer rounds" in note for note in expected["lists"]["Notes"]) == (pair in {
        "stopped early", "examples"})
