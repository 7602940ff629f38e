"""Every program of the corpus gets the verdict that its head asks for, and does what it does without the checker.

All programs run on one build of each kind: those of FAST in the fast part, the others as slow tests.  The oracle judges
what the core finds in every eighth pair, and in `make nightly` in all.
"""

import functools
import sys

import pytest

from tests.race.core.tracing import contradictions, tracing
from tests.race.whole.corpus_runs import CORPUS, has_numpy, programs, run_checked, run_plain
from tests.race.whole.expectations import Expectation, Found, Head, Place, disagreements, read_head

FAST = {     # pairs: one of each folder
    "asyncio/to_thread_counter", "atomicity/two_locked_blocks", "attributes/counting_decorator",
    "check_then_act/connection_cache", "closures/nonlocal_counter", "containers/defaultdict_counter",
    "counters/global_augmented", "futures/result_not_awaited", "iteration/dict_against_insert",
    "iterators/shared_generator", "numpy/item", "publication/half_built", "real_life/lru_cache",
    "sync/condition_not_waited_for", "syntax/tuple_swap_attributes"}
STEP = 8              # one pair of so many is not only for the night
# What a racy program does is up to chance, too; what a race-free one must not be told of gets no second run.
MORE_RUNS = 30

numpy_is_in = functools.cache(has_numpy)
outcome_without = functools.cache(run_plain)   # for both builds


def cases(mark):
    """Return all programs, each with the mark that it gets for its number and its pair."""
    return [pytest.param(program, id=str(program.relative_to(CORPUS)),
                         marks=mark(number, str(program.relative_to(CORPUS).parent)))
            for number, program in enumerate(programs())]


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("program", cases(lambda _, pair: [] if pair in FAST else [pytest.mark.slow]))
def test_program_gets_its_verdict(program, python):
    numpy = "numpy" in program.parts
    if numpy and not numpy_is_in(python):
        pytest.skip("no NumPy in this build")
    plain = outcome_without(python if numpy else sys.executable, program)   # what is printed is the same everywhere
    checked = run_checked(python, program)
    assert not checked.problem, checked.problem + "\n" + checked.stderr
    head = read_head(program)
    differing = list(disagreements(head, checked.races, checked.notes))
    for _ in range(MORE_RUNS):
        if not differing or (head.clean and checked.races):
            break
        checked = run_checked(python, program)
        differing = list(disagreements(head, checked.races, checked.notes))
    assert not differing, "\n".join(differing)
    assert checked.same_as(plain), (plain, checked.stdout, checked.code, checked.stderr)
    assert all(found.complete for found in checked.races), "a report without its variable or a stack"


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("program", cases(
    lambda number, _: [pytest.mark.nightly if number // 2 % STEP else pytest.mark.slow]))
def test_core_and_oracle_agree(program, python, tmp_path):
    if "numpy" in program.parts and not numpy_is_in(python):
        pytest.skip("no NumPy in this build")
    checked = run_checked(python, program, **tracing(tmp_path))
    assert not checked.problem, checked.problem + "\n" + checked.stderr
    assert contradictions(tmp_path) == []


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
    assert len(pairs) >= 150
    assert {str(pair.relative_to(CORPUS)) for pair in pairs} >= FAST
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
