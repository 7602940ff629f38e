"""Planted programs on free-threaded builds: the object is named, or the answer is open; never a wrong name."""

import pytest

from tests.scale.planted import FREE, WRONG, investigated, programs, score

SOME = ("shared_object", "mortal_constant", "lock", "list_append", "private_work")


@pytest.mark.slow   # up to a minute each
@pytest.mark.skipif(not FREE, reason="no free-threaded build")
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("label", FREE)
def test_answer_is_right_or_open(label, name):
    program = programs()[name]
    found = investigated(program, FREE[label])
    assert score(program, found) != WRONG, (found.judgement, found.objects, found.also)


def test_every_program_has_a_truth_and_every_truth_a_program():
    from tests.scale.planted import CORPUS
    assert {path.stem for path in CORPUS.glob("*.py")} == set(programs())
