"""Answers as JSON, and back: nothing that a report shows is lost, and what is damaged is named."""

import json
from dataclasses import replace
from math import inf

import pytest

from gilscope.toolkit.records import DamagedError
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.scale.api import CallableOutcome, CallableScaling
from gilscope.toolkit.scale.judgement import Doubt, Judgement, Obstacle, ScalingVerdict, Span
from gilscope.toolkit.scale.repair_trials import RepairOutcome, RepairTrial
from gilscope.toolkit.scale.report import answer_document
from gilscope.toolkit.scale.scaling_values import BuildScaling, answer_values, read_answer
from tests.commands.test_scale import check_schema
from tests.scale.answers import make_answer, of_function, slower_investigation

FOUND = slower_investigation(trial=RepairTrial(
    outcome=RepairOutcome.MEASURED, of_ceiling=Span(ratio=0.9, lo=0.8, hi=1.0), without=0.4))
OPEN = slower_investigation(
    judgement=Judgement(verdict=ScalingVerdict.UNSURE, obstacle=Obstacle.UNKNOWN, doubt=Doubt.FEW_CLEAN),
    trial=RepairTrial(outcome=RepairOutcome.UNCOPIED, detail="TypeError: no"),
    evidence=replace(FOUND.evidence, enough=False, of_ceiling=Span(ratio=0.7, lo=0.5, hi=inf), speedup=None))
CALLED = {"call": "work(1)", "place": "test_app.py:3"}
ANSWERS = {
    "function": make_answer(
        of_function(FOUND), of_function(OPEN, label="3.15t", version="3.15.0rc1+"),
        of_function(label="3.13t", version="3.13.2", problem="app cannot be imported")),
    "module": make_answer(
        BuildScaling(label="3.14t", version="3.14.7", complete=False, callables=(
            CallableScaling(name="work", outcome=CallableOutcome.SLOWER, seconds_per_call=1e-6, found=FOUND, **CALLED),
            CallableScaling(name="looked", outcome=CallableOutcome.SCALES, seconds_per_call=1e-6, look=OPEN.evidence,
                            **CALLED),
            CallableScaling(name="fails", outcome=CallableOutcome.FAILED, problem="ValueError", **CALLED),
            CallableScaling(name="lost", outcome=CallableOutcome.NO_CALL))),
        BuildScaling(label="3.15t", version="3.15.0", problem="app cannot be imported"), subject="app"),
}


def as_stored(answer):
    return json.loads(json.dumps(answer_values(answer), allow_nan=False))


@pytest.mark.parametrize("kind", ANSWERS)
def test_answer_that_was_stored_reads_as_it_was(kind):
    answer = replace(ANSWERS[kind], machine=replace(ANSWERS[kind].machine, hostname=""))
    read = read_answer(as_stored(answer))
    assert read == answer
    assert render(answer_document(read)) == render(answer_document(answer))


@pytest.mark.parametrize("kind", ANSWERS)
def test_stored_answer_fits_its_schema_and_does_not_name_the_machine(kind):
    answer = replace(ANSWERS[kind], machine=replace(ANSWERS[kind].machine, hostname="my-secret-host"))
    values = as_stored(answer)
    check_schema(values)
    assert "secret" not in json.dumps(values)


def of_first(values):
    return values["builds"][0]["callables"][0]["found"]


@pytest.mark.parametrize(("change", "said"), [
    (lambda values: values.pop("threads"), "it lacks threads"),
    (lambda values: values.update(threads="two"), "threads is 'two', not a whole number"),
    (lambda values: values.pop("builds"), "builds is None, not a list"),
    (lambda values: values.update(builds=[1]), r"builds\[0\] is 1, not an object"),
    (lambda values: values["builds"][0].pop("callables"), "callables is None, not a list"),
    (lambda values: values.pop("machine"), "it lacks machine"),
    (lambda values: of_first(values)["judgement"].update(verdict="fine"), "verdict is 'fine', not scales or plateaus"),
    (lambda values: of_first(values)["evidence"]["speedup"].update(lo="low"), "speedup.lo is 'low', not a number"),
    (lambda values: of_first(values)["objects"][0].pop("name"), r"objects\[0\] lacks name"),
    (lambda values: of_first(values)["loaded"].pop("payloads"), "lacks payloads"),
])
def test_damaged_field_is_named(change, said):
    values = as_stored(ANSWERS["function"])
    change(values)
    with pytest.raises(DamagedError, match=said):
        read_answer(values)
