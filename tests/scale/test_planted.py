"""Planted programs on free-threaded builds: the object is named, or the answer is open; never a wrong name."""

from types import SimpleNamespace

import pytest

from gilscope.toolkit.scale.judgement import Doubt, Judgement, Obstacle, ScalingVerdict
from tests.scale.planted import CURED, FREE, RIGHT, WRONG, Agreement, agreement, investigated, programs, score

SOME = ("shared_object", "mortal_constant", "lock", "list_append", "private_work")


@pytest.mark.slow   # up to a minute each
@pytest.mark.skipif(not FREE, reason="no free-threaded build")
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("label", FREE)
def test_answer_is_right_or_open(label, name):
    program = programs()[name]
    found = investigated(program, FREE[label])
    assert score(program, found) != WRONG, (found.judgement, found.objects, found.also)


@pytest.mark.slow   # up to three minutes
@pytest.mark.skipif(not FREE, reason="no free-threaded build")
@pytest.mark.parametrize("label", FREE)
def test_plain_case_gets_an_answer_in_one_of_three_tries(label):
    program = programs()["shared_object"]
    for _ in range(3):
        found = investigated(program, FREE[label])
        if score(program, found) in {RIGHT, CURED}:
            return
    if found.evidence.one_core:
        pytest.skip("this machine has no two cores: threads run as hyperthreads of one, which hides what they lose")
    pytest.fail(f"{found.judgement}")


def test_every_program_has_a_truth_and_every_truth_a_program():
    from tests.scale.planted import CORPUS
    assert {path.stem for path in CORPUS.glob("*.py")} == set(programs())


def answer(verdict, obstacle, *names, doubt=None, took=None):
    return SimpleNamespace(judgement=Judgement(verdict=verdict, obstacle=obstacle, doubt=doubt),
                           handoff=took and SimpleNamespace(median=took),
                           objects=[SimpleNamespace(name=name) for name in names])


def test_answers_of_two_runs_agree_contradict_or_are_open():
    one = answer(ScalingVerdict.PLATEAUS, Obstacle.COUNTS, "app.A", "app.B")
    for other, expected in [
            (answer(ScalingVerdict.PLATEAUS, Obstacle.COUNTS, "app.B", "app.A"), Agreement.SAME),
            (answer(ScalingVerdict.SLOWER, Obstacle.COUNTS, "app.A", "app.B"), Agreement.SLOWER),
            (answer(ScalingVerdict.PLATEAUS, Obstacle.COUNTS, "app.A"), Agreement.FEWER),
            (answer(ScalingVerdict.SLOWER, Obstacle.COUNTS, "app.A", "app.C"), Agreement.NAMES),
            (answer(ScalingVerdict.PLATEAUS, Obstacle.LOCK, "app.A"), Agreement.CONTRADICTION),
            (answer(ScalingVerdict.SCALES, Obstacle.NONE), Agreement.CONTRADICTION),
            (answer(ScalingVerdict.PLATEAUS, Obstacle.COUNTS, doubt=Doubt.SET), Agreement.OPEN),
            (answer(ScalingVerdict.UNSURE, Obstacle.UNKNOWN), Agreement.OPEN)]:
        assert agreement(one, other) is agreement(other, one) is expected


def test_answers_on_cpus_at_another_distance_do_not_contradict_each_other():
    def lost_to(obstacle, took):
        return answer(ScalingVerdict.PLATEAUS, obstacle, "app.A", took=took)      # nanoseconds for a cache line

    near = lost_to(Obstacle.COUNTS, 26.0)
    assert agreement(near, lost_to(Obstacle.LOCK, 160.0)) is Agreement.MOVED
    assert agreement(near, lost_to(Obstacle.LOCK, 27.0)) is Agreement.CONTRADICTION
    assert agreement(near, lost_to(Obstacle.LOCK, None)) is Agreement.CONTRADICTION     # it is not known
