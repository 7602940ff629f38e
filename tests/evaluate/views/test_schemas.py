"""What `evaluate` and `doctor` write fits the schemas that are shipped, and the codes of facts are in them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate import probes
from gilscope.toolkit.evaluate.decision import Decision
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild, UnbuiltModule
from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    Forced,
    InterpretersCrashed,
    LeftOut,
    Missing,
    SharedFact,
    Unwatched,
    WorkloadFailure,
)
from gilscope.toolkit.evaluate.views import doctor
from gilscope.toolkit.evaluate.views.json_document import plain
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
    workers,
)
from tests.report.test_as_json import closed

SCHEMAS = ROOT / "toolkit" / "report" / "schemas"
CODE = re.compile(r'"([a-z]+(?:-[a-z]+)*\.[a-z0-9]+(?:-[a-z0-9]+)*)"')
UNWATCHED = Unwatched(file="a.py", line=3, what="what exec runs")
RACES = replace(CLEAN, lacking=(("tests", NO_TIME),), unwatched=(UNWATCHED,),
                shared=(SharedFact(variable="x", file="a.py", line=1, other_file="b.py", other_line=2),))
FAILED = OwnBuild(build="3.14t", failure=Missing(reason="no compiler"),
                  unbuilt=(UnbuiltModule(name="app._c", why="no"),))
FORCED = Forced(against="3.14", by="workload", cost=found().cost, measured={2: ratio(1.4)}, failure="", machine=QUIET)


def valid(document, name):
    """Check a document against its schema, which must describe every field."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(json.dumps(document)), closed(schema))


@pytest.mark.parametrize("given", [
    evaluation(), evaluation(machine=NOT_DONE), concluded(found(), races=RACES),
    concluded(found(own=FAILED, tests=NO_TIME, cost=NO_TIME, gain=NO_TIME, contention=NO_TIME, forced=FORCED)),
    concluded(found(tests=suite(failed=2, ending="crash: SIGSEGV", left_out=(LeftOut(file="t.py", why="no"),)),
                    failure=WorkloadFailure(kind="fails", detail="no"), differs="other", gain=gain(),
                    own=OwnBuild(build="3.14t", report=report(lxml())))),
    concluded(found(readiness=Missing(reason="no index")), races=NOT_DONE,
              interpreters=(inside(finding(), workers=InterpretersCrashed(reason="it crashed")),
                            inside(lxml(), workers=workers()))),
    concluded(),
], ids=range(7))
def test_evaluation_fits_its_schema(given):
    valid(plain(given), "evaluate")


def test_packages_and_what_a_lock_alone_tells_fit_their_schema():
    newest = replace(report(lxml(), finding(Status.NO_WHEEL)), newest={"lxml": ("7.0", Status.READY)})
    valid(doctor.plain([newest]), "doctor")
    valid(doctor.plain_metadata("uv.lock", {"3.14t": [WheelChoice(name="a", version="1", kind="pure")]}), "doctor")


def test_schema_has_every_code_that_a_probe_names():
    named = {code for path in Path(probes.__file__).parent.glob("*.py") for code in CODE.findall(path.read_text())}
    told = json.loads((SCHEMAS / "evaluate.json").read_text())["$defs"]["Fact"]["properties"]["code"]["enum"]
    assert len(named) > 100
    assert named <= set(told)


@pytest.mark.parametrize("codes", [Decision, Status, InterpreterStatus])
def test_codes_are_identifiers_that_the_schema_lists_and_have_words(codes):
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", each) for each in codes)
    assert all(each.words for each in codes)
    schema = json.loads((SCHEMAS / "evaluate.json").read_text())
    enums = [prop["enum"] for kind in schema["$defs"].values() for prop in kind.get("properties", {}).values()
             if "enum" in prop]
    assert [*codes] in enums
