"""Every section goes through JSON and back: the promised ones by their names, the others under `details`."""

import dataclasses
import json

from gilscope import __version__
from gilscope.toolkit.evaluate.evaluation import Evaluation
from gilscope.toolkit.evaluate.facts import PlanStep
from gilscope.toolkit.evaluate.shared_sections import SHARED
from gilscope.toolkit.evaluate.views.json_document import INTERNAL, PROMISED, plain
from tests.evaluate.made_up import evaluation


def told():
    return json.loads(json.dumps(plain(evaluation()), allow_nan=False))


def test_comes_back_as_it_went():
    assert told() == plain(evaluation())


def test_says_what_wrote_it():
    assert (told()["schema"], told()["tool"], told()["gilscope"]) == (
        "gilscope/evaluate/3", "gilscope evaluate", __version__)


def test_details_have_every_section_that_is_not_promised():
    assert set(told()["details"]) == {field.name for field in dataclasses.fields(Evaluation)} - PROMISED - INTERNAL


def test_details_of_a_build_are_every_section_or_the_reason_why_not():
    details = told()["details"]
    assert details["builds"][0] == {"label": "3.14t", "version": "3.14.0", "free_threaded": True}
    assert set(details["sections"]) == {section.code for section in SHARED}
    assert details["sections"]["speed"]["speed"]["3.14t"]["gain"]["measured"]["2"]["verdict"] == "faster"
    assert details["sections"]["speed"]["others"]["processes on 3.14"]["measured"]["verdict"] == "faster"
    assert details["sections"]["packages"]["3.15t"] == {"missing": "offline", "cause": "other"}


def test_culprit_has_distribution_file_way_and_the_newest_version():
    sections = told()["details"]["sections"]
    (lxml, _) = sections["packages"]["3.14t"]["packages"]
    assert (lxml["name"], lxml["version"], lxml["newest"]) == ("lxml", "6.1", ["7.0", "ready"])
    (culprit,) = lxml["culprits"]
    assert (culprit["module"], culprit["seen_by"]) == ("lxml.etree", "hook and import")
    assert culprit["way"][0]["line"] == 41
    assert lxml["extensions"][0]["file"].endswith(".so")
    (asked,) = sections["tests"]["3.14t"]["imports"]
    assert (asked["what"], asked["file"], asked["line"]) == ("lxml.etree", "src/myapp/io.py", 3)


def test_conclusion_has_word_reasons_and_confidence():
    first = told()["conclusions"][0]
    assert (first["target"], first["word"], first["confidence"]) == ("3.14t", "BLOCKED", "high")
    assert first["reasons"]


def test_step_of_a_fact_is_a_key_of_the_plan_however_it_is_worded(monkeypatch):
    found = evaluation()
    for each in PlanStep:
        monkeypatch.setattr(each, "_value_", "other words")
    values = plain(found)
    steps = {fact["code"]: fact["step"] for fact in values["facts"]}
    assert (steps["package.turns-gil-on"], steps["cost.measured"]) == ("dependencies", "cost-and-gain")
    assert {*steps.values()} - {None} <= {step["key"] for step in values["plan"]}


def test_answer_and_plan_are_those_of_the_screen():
    answer, plan = told()["answer"], told()["plan"]
    assert (answer["decision"], answer["target"]) == ("not-yet", "3.14t")
    assert answer["blockers"][0] == {
        "what": "lxml 6.1 turns the GIL on", "who": None, "action": "take lxml 7.0, which mends it",
        "package": "lxml 7.0", "mend": ""}
    assert answer["cost"]["memory"]["process"] == "the process of the workload with 2 threads"
    assert answer["gain"]["how"] == "measured"
    assert {step["state"] for step in plan} <= {"done", "open", "not known", "not needed"}
