"""What scripts get: every section, through JSON and back, under keys that stay."""

import dataclasses
import json

from gilscope.toolkit.evaluate.evaluation import BuildEvaluation, Evaluation
from gilscope.toolkit.evaluate.views.json_document import INTERNAL, SCHEMA, plain
from tests.evaluate.made_up import evaluation


def told():
    return json.loads(json.dumps(plain(evaluation()), allow_nan=False))


def test_comes_back_as_it_went():
    assert told() == plain(evaluation())


def test_top_keys():
    assert set(told()) == {
        "schema", "tool", "project", "machine", "builds", "interpreters", "processes", "races", "conclusions",
        "next_steps", "seconds", "development", "extensions", "upkeep", "command", "kept", "kept_since", "answer",
        "plan", "facts"}
    assert (told()["schema"], told()["tool"]) == (SCHEMA, "gilscope evaluate")
    assert {field.name for field in dataclasses.fields(Evaluation)} - INTERNAL < set(told())


def test_build_has_every_section_or_the_reason_why_not():
    first, second = told()["builds"]
    assert set(first) == {field.name for field in dataclasses.fields(BuildEvaluation)}
    assert first["build"] == {"label": "3.14t", "version": "3.14.0", "free_threaded": True}
    assert first["gain"]["measured"]["2"]["verdict"] == "faster"
    assert second["readiness"] == {"missing": "offline", "cause": "other"}


def test_culprit_has_distribution_file_way_and_the_newest_version():
    (lxml, _) = told()["builds"][0]["readiness"]["packages"]
    assert (lxml["name"], lxml["version"], lxml["newest"]) == ("lxml", "6.1", ["7.0", "ready"])
    (culprit,) = lxml["culprits"]
    assert (culprit["module"], culprit["seen_by"]) == ("lxml.etree", "hook and import")
    assert culprit["way"][0]["line"] == 41
    assert lxml["extensions"][0]["file"].endswith(".so")
    (asked,) = told()["builds"][0]["tests"]["imports"]
    assert (asked["what"], asked["file"], asked["line"]) == ("lxml.etree", "src/myapp/io.py", 3)


def test_conclusion_has_word_reasons_and_confidence():
    first = told()["conclusions"][0]
    assert (first["target"], first["word"], first["confidence"]) == ("3.14t", "BLOCKED", "high")
    assert first["reasons"]


def test_answer_and_plan_are_those_of_the_screen():
    answer, plan = told()["answer"], told()["plan"]
    assert (answer["decision"], answer["target"]) == ("wait", "3.14t")
    assert answer["blockers"][0] == {
        "what": "lxml 6.1 turns the GIL on", "who": None, "action": "take lxml 7.0, which mends it",
        "package": "lxml 7.0", "mend": ""}
    assert answer["cost"]["memory"]["process"] == "the process of the workload with 2 threads"
    assert answer["gain"]["how"] == "measured"
    assert {step["state"] for step in plan} <= {"done", "open", "not known", "not needed"}
