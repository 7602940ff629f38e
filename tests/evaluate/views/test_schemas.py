"""Documents of `evaluate` and `doctor` fit the shipped schemas, which describe and require every promised field."""

import copy
import functools
import json
import re
from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.decision import Decision
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.pipeline import Evaluator
from gilscope.toolkit.evaluate.probes import SECTIONS
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, UnbuiltModule
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    Cause,
    Forced,
    LeftOut,
    Missing,
    SharedFact,
    Unwatched,
    WorkloadFailure,
)
from gilscope.toolkit.evaluate.views import doctor
from gilscope.toolkit.evaluate.views.json_document import plain
from gilscope.toolkit.evaluate.wheels.rules import WheelCode, code_of_import
from tests.conformance import builds
from tests.conformance.builds import ROOT
from tests.evaluate.made_up import (
    CLEAN,
    NOT_DONE,
    QUIET,
    concluded,
    evaluation,
    finding,
    found,
    gain,
    inside,
    lxml,
    ratio,
    report,
    suite,
    trial,
)
from tests.report.test_as_json import closed

jsonschema = pytest.importorskip("jsonschema")
SCHEMAS = ROOT / "toolkit" / "report" / "schemas"
UNWATCHED = Unwatched(file="a.py", line=3, what="what exec runs")
RACES = replace(CLEAN, lacking=(("tests", NO_TIME),), unwatched=(UNWATCHED,),
                shared=(SharedFact(variable="x", file="a.py", line=1),))
FAILED = OwnBuild(build="3.14t", failure=Missing(reason="no compiler"),
                  unbuilt=(UnbuiltModule(name="app._c", why="no"),))
FORCED = Forced(against="3.14", by="workload", cost=found().cost, measured={2: ratio(1.4)}, failure="", machine=QUIET)


# What CONTRIBUTING.md promises: to take a field out of this table takes a new number in `schema`, and a warning before.
DECLARATION = {"name", "file", "init", "gil", "interpreters", "problem", "damaged"}
PACKAGE = {
    "name", "version", "requested", "status", "status_words", "blocks", "reasons", "interpreters",
    "interpreter_reasons", "way", "wheel_tags", "libc", "culprits", "lost", "newest", "extensions", "details"}
PROMISED = {
    ("evaluate", ""): {"schema", "tool", "gilscope", "command", "answer", "conclusions", "facts", "plan",
                       "next_steps", "details"},
    ("evaluate", "Fact"): {"code", "target", "effect", "subject", "text", "evidence", "places", "step", "action",
                           "owner", "provisional"},
    ("evaluate", "Conclusion"): {"target", "word", "confidence", "reasons", "unexercised"},
    ("evaluate", "Answer"): {"decision", "target", "because", "gain", "cost", "blockers", "effort", "instead", "more",
                             "failing"},
    ("evaluate", "Gained"): {"how", "ratio", "lo", "hi", "threads", "against", "today", "busiest"},
    ("evaluate", "Paid"): {"times", "lo", "hi", "against", "by", "busy", "memory", "forced", "of"},
    ("evaluate", "Memory"): {"here", "there", "process"},
    ("evaluate", "Missing"): {"missing", "cause"},
    ("evaluate", "Blocker"): {"what", "who", "action", "package", "mend"},
    ("evaluate", "Effort"): {"files", "places", "packages", "unknown", "beside"},
    ("evaluate", "Step"): {"key", "name", "state", "says"},
    ("doctor", "Packages"): {"schema", "tool", "gilscope", "blocked", "builds"},
    ("doctor", "Metadata"): {"schema", "tool", "gilscope", "metadata_only", "lock", "builds"},
    ("doctor", "WheelSets"): {"schema", "tool", "gilscope", "blocked", "unusable_files", "sets"},
    ("doctor", "BuildReport"): {
        "build", "version", "reference", "blocked", "versions_chosen_by", "others", "pure_python_dependencies",
        "pure_python_here_compiled_elsewhere", "unowned_modules_that_need_the_gil", "packages"},
    ("doctor", "Package"): PACKAGE,
    ("doctor", "Extension"): DECLARATION,
    ("doctor", "ImportStep"): {"module", "file", "line"},
    ("doctor", "WheelChoice"): {"name", "version", "kind", "wheel", "note", "libc", "needed_by"},
    ("doctor", "WheelSet"): {"name", "version", "blocked", "files", "answers", "findings", "builds"},
    ("doctor", "SetFile"): {"file", "sha256", "kind", "requires_python", "free_threading", "tags", "installed_on",
                            "extensions", "libraries"},
    ("doctor", "WheelAnswer"): {"build", "file", "why_no_wheel", "run", "twin", "status", "gil_on", "lost",
                                "interpreters"},
    ("doctor", "WheelFinding"): {"code", "effect", "builds", "wheel", "files", "package", "text"},
}
PACKAGES = doctor.plain([replace(report(lxml(), finding(Status.NO_WHEEL)), newest={"lxml": ("7.0", Status.READY)})])
LOCK = doctor.plain_metadata("uv.lock", {"3.14t": [WheelChoice(name="a", version="1", kind="pure")]})


@functools.cache
def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(closed(schema))


def valid(document, name):
    """Check a document against its schema, which must describe every field."""
    validator(name).validate(json.loads(json.dumps(document)))


@pytest.mark.parametrize("given", [
    evaluation(), evaluation(machine=NOT_DONE), concluded(found(), races=RACES),
    concluded(found(own=FAILED, tests=NO_TIME, cost=NO_TIME, gain=NO_TIME, contention=NO_TIME, forced=FORCED)),
    concluded(found(tests=suite(failed=2, ending="crash: SIGSEGV", left_out=(LeftOut(file="t.py", why="no"),)),
                    failure=WorkloadFailure(kind="fails", detail="no"), differs="other", gain=gain(),
                    own=OwnBuild(build="3.14t", report=report(lxml())))),
    concluded(found(readiness=Missing(reason="no index")), races=NOT_DONE,
              interpreters=(inside(finding(), trial=Missing(reason="it crashed", cause=Cause.CRASHED)),
                            inside(lxml(), trial=trial()))),
    concluded(),
], ids=range(7))
def test_evaluation_fits_its_schema(given):
    valid(plain(given), "evaluate")


@pytest.mark.parametrize("document", [PACKAGES, LOCK], ids=["packages", "lock"])
def test_packages_and_what_a_lock_alone_tells_fit_their_schema(document):
    valid(document, "doctor")


@pytest.mark.parametrize(("name", "part"), PROMISED, ids=".".join)
def test_schema_describes_and_requires_exactly_the_promised_fields(name, part):
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    described = schema["$defs"][part] if part else schema
    assert set(described["properties"]) == set(described["required"]) == PROMISED[name, part]


def test_every_object_that_a_schema_describes_is_promised():
    assert {(name, part) for name in ("evaluate", "doctor")
            for part in json.loads((SCHEMAS / f"{name}.json").read_text())["$defs"]} == {
        each for each in PROMISED if each[1]}


def fields_of(value, way=()):
    """Yield the way to each field that is not below `details`, once for each place in a list or object."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(value, dict):
            yield (*way, key)
        if key != "details":
            yield from fields_of(each, (*way, key))


def test_document_without_a_promised_field_fails():
    for name, document in (("evaluate", plain(evaluation())), ("doctor", PACKAGES), ("doctor", LOCK)):
        document = json.loads(json.dumps(document))   # noqa: PLW2901 - each its own copy
        ways = {tuple("*" if isinstance(key, int) else key for key in way): way for way in fields_of(document)}
        accepted = []
        for way in ways.values():
            less = copy.deepcopy(document)
            inner = less
            for key in way[:-1]:
                inner = inner[key]
            del inner[way[-1]]
            try:
                valid(less, name)
            except jsonschema.ValidationError:
                continue
            accepted.append(way)
        assert accepted == [("builds", "3.14t")] * (document == LOCK)   # a build of the user's choice, no field


PROJECT = """
[project]
name = "tiny"
version = "1.0"
dependencies = []
"""


@pytest.mark.slow
@pytest.mark.builds("free")
def test_json_of_a_project_that_was_evaluated_fits_its_schema(build, tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    project = tmp_path / "tiny"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "tiny.py").write_text("def work():\n    return sum(range(10_000))\n")
    request = EvaluationRequest(path=project, workload="tiny:work", budget=20.0, offline=True)
    found = plain(Evaluator(request, (build,), builds.found(), print).run())
    valid(found, "evaluate")
    assert {each["target"] for each in found["conclusions"]} >= {build.label}
    assert found["answer"]["target"] == build.label
    assert found["facts"]
    assert found["details"]["project"]["name"] == "tiny"


def test_schema_lists_the_codes_of_all_sections():
    codes = {code for section in SECTIONS for code in section.codes.kinds}
    told = json.loads((SCHEMAS / "evaluate.json").read_text())["$defs"]["Fact"]["properties"]["code"]["enum"]
    assert {*told} == codes
    assert told == sorted(told)


def test_schema_lists_the_codes_of_wheels():
    kinds = json.loads((SCHEMAS / "doctor.json").read_text())["$defs"].values()
    codes = {*WheelCode, *(code_of_import(each) for each in Status if not each.mends)}
    assert codes in [set(prop.get("enum", ())) for kind in kinds for prop in kind.get("properties", {}).values()]


@pytest.mark.parametrize("codes", [Decision, Status, InterpreterStatus])
def test_codes_are_identifiers_that_the_schema_lists_and_have_words(codes):
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", each) for each in codes)
    assert all(each.words for each in codes)
    enums = [prop["enum"] for name in ("evaluate", "doctor")
             for kind in json.loads((SCHEMAS / f"{name}.json").read_text())["$defs"].values()
             for prop in kind.get("properties", {}).values() if "enum" in prop]
    assert [*codes] in enums
