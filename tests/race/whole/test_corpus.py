"""Every program of the corpus gets the verdict that its head asks for, and does what it does without the checker.

By default all programs run on one build with the GIL and one without, as far as GILSCOPE_TEST_BUILDS names them, with
the C core, and every eighth with the reference model.  All of it, some minutes per build and core:

    export GILSCOPE_RACE_CORPUS=all GILSCOPE_TEST_BUILDS=3.12=/path/to/python,3.14t=...
    python -m pytest -n 2 tests/race/whole/test_corpus.py
"""

import functools
import os
import subprocess
import sys

import pytest

from tests.conformance.builds import builds
from tests.race.whole.corpus_runs import CORPUS, has_numpy, programs, run_checked, run_plain
from tests.race.whole.expectations import Expectation, Found, Head, Place, disagreements, read_head

WHOLE = os.environ.get("GILSCOPE_RACE_CORPUS") == "all"
SAMPLE = 8            # one of so many programs with the reference model
COMMANDS = {"C": "gilscope", "Python": "tests.race.model.command"}     # by the core's name in a report
# What a racy program does is up to chance, too; what a race-free one must not be told of gets no second run.
MORE_RUNS = 2

numpy_is_in = functools.cache(has_numpy)
outcome_without = functools.cache(run_plain)   # both cores are compared with one


@functools.cache
def has_gil(python):
    code = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "0"


def chosen_builds():
    """Return all builds, or one of each sort."""
    found = builds()
    if WHOLE:
        return found
    return {("gil" if gil else "free-threaded"): python
            for gil in (True, False)
            for python in [next((each for each in found.values() if has_gil(each) == gil), None)] if python}


def cases():
    """Return (label, python, core, program) of everything to run."""
    return [
        pytest.param((label, python, core, program), id=f"{label}-{core}-{program.relative_to(CORPUS)}")
        for label, python in chosen_builds().items()
        for core in COMMANDS
        for number, program in enumerate(programs())
        if core == "C" or WHOLE or number % SAMPLE in {0, 1}    # twins side by side
    ]


@pytest.mark.sample(100)
@pytest.mark.parametrize("case", cases())
def test_program_gets_its_verdict(case):
    _, python, core, program = case
    numpy = "numpy" in program.parts
    if numpy and not numpy_is_in(python):
        pytest.skip("no NumPy in this build")
    plain = outcome_without(python if numpy else sys.executable, program)   # what is printed is the same everywhere
    checked = run_checked(python, program, gilscope=COMMANDS[core])
    assert not checked.problem, checked.problem + "\n" + checked.stderr
    assert checked.core == core
    head = read_head(program)
    differing = list(disagreements(head, checked.races, checked.notes))
    for _ in range(MORE_RUNS):
        if not differing or (head.clean and checked.races):
            break
        checked = run_checked(python, program, gilscope=COMMANDS[core])
        differing = list(disagreements(head, checked.races, checked.notes))
    assert not differing, "\n".join(differing)
    assert checked.same_as(plain), (plain, checked.stdout, checked.code, checked.stderr)
    assert all(found.complete for found in checked.races), "a report without its variable or a stack"


@pytest.mark.parametrize("program", programs(), ids=lambda program: str(program.relative_to(CORPUS)))
def test_head_is_complete(program):
    head = read_head(program)
    assert head is not None, "no EXPECT line"
    assert head.clean == (program.name == "fixed.py")
    for expected in (*head.races, *head.notes):
        for place in expected.lines:
            lines = (program.parent / place.file).read_text().splitlines()
            assert lines[place.line - 1].strip()


def test_there_are_enough_pairs():
    pairs = {program.parent for program in programs()}
    assert len(pairs) >= 84
    assert all((pair / name).exists() for pair in pairs for name in ("racy.py", "fixed.py"))


LOST = Expectation(frozenset({"lost update"}), "Counter.value", frozenset({Place("racy.py", 7)}))


def found(kind="lost update", variable="Counter.value of <Counter at 0x1>", line=7, *, atomicity=False):
    return Found(kind, variable, frozenset({Place("racy.py", line)}), atomicity, complete=True)


@pytest.mark.parametrize(("races", "sentences"), [
    ([found()], []),
    ([found(), found("unsynchronised read/write")], []),              # another pair of the same mistake
    ([], ["missed"]),
    ([found("check-then-act")], ["missed"]),
    ([found(variable="Counter.name")], ["missed", "unexpected"]),
    ([found(line=8)], ["missed", "unexpected"]),
    ([found(atomicity=True)], ["missed"]),
])
def test_disagreements_are_told(races, sentences):
    told = list(disagreements(Head((LOST,), ()), races, []))
    assert [sentence.partition(":")[0] for sentence in told] == sentences


def test_clean_program_may_have_notes_but_no_races():
    assert not list(disagreements(Head((), ()), [], [found()]))
    assert list(disagreements(Head((), ()), [found()], []))


def test_expected_note_is_missed():
    assert list(disagreements(Head((), (LOST,)), [], []))
    assert not list(disagreements(Head((), (LOST,)), [], [found("unsynchronised read/write")]))
