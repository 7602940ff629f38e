"""Planted programs on free-threaded builds: the object is named, or the answer is open; never a wrong name."""

import pytest

from tests.scale.planted import CORPUS, CURED, RIGHT, WRONG, investigated, programs, score

pytestmark = pytest.mark.builds("free")
TRIES = 5


@pytest.mark.slow   # up to a minute each
@pytest.mark.parametrize("name", ["private_work", *(
    pytest.param(name, marks=pytest.mark.nightly) for name in ("mortal_constant", "lock", "list_append"))])
def test_answer_is_right_or_open(python, name):
    program = programs()[name]
    found = investigated(program, python)
    assert score(program, found) != WRONG, (found.judgement, found.objects, found.also)


@pytest.mark.slow    # up to a minute for each try
@pytest.mark.quiet   # two threads must have a core each
def test_plain_case_gets_an_answer(python):
    program = programs()["shared_object"]
    for _ in range(TRIES):
        found = investigated(program, python)
        assert score(program, found) != WRONG, (found.judgement, found.objects, found.also)
        if score(program, found) in {RIGHT, CURED}:
            return
    if found.evidence.one_core:
        pytest.skip("this machine has no two cores: threads run as hyperthreads of one, which hides what they lose")
    pytest.fail(f"{found.judgement}")


def test_every_program_has_a_truth_and_every_truth_a_program():
    assert {path.stem for path in CORPUS.glob("*.py")} == set(programs())
