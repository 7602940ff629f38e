"""Rendered race reports against tests/golden/.  After a wanted change: GILSCOPE_GOLDEN=write, then read the diff."""

import io
import json
import os

import pytest

from gilscope.toolkit.race.report import json_, sarif, text
from gilscope.toolkit.race.report.model import CheckGap
from gilscope.toolkit.race.report.sentences import RULES
from gilscope.toolkit.race.terms import GapReason, RaceKind
from tests.conformance.builds import ROOT
from tests.race.fakes.report import CHECK, HIDDEN, make_race, make_report
from tests.report.test_as_json import closed

GOLDEN = ROOT / "tests" / "golden"


def check(name, rendered):
    path = GOLDEN / name
    if os.environ.get("GILSCOPE_GOLDEN") == "write":
        path.write_text(rendered + "\n", encoding="utf-8")
    assert rendered + "\n" == path.read_text(encoding="utf-8")


def test_text():
    check("race.txt", text.render(make_report()))


def test_text_with_notes():
    check("race-notes.txt", text.render(make_report(), notes=True))


def test_text_in_colour():
    check("race-colour.txt", text.render(make_report(races=(CHECK,)), color=True))


def test_text_of_a_clean_run():
    report = make_report(races=(), notes=(), suppressed=(), unused_suppressions=(), unexplained_suppressions=(),
                         unrewritten=(), lost=(), processes=1)
    assert text.render(report) == "gilscope race: no race in what this run did [main.py, on 3.14t]"


def test_one_race_as_text_is_part_of_the_report():
    assert f"\n{text.render_race(make_race(), make_report().root)}\n" in text.render(make_report())


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "environment", "expected"), [
    (Terminal(), {}, True), (Terminal(), {"NO_COLOR": "1"}, False), (Terminal(), {"TERM": "dumb"}, False),
    (io.StringIO(), {}, False),
])
def test_colour_on_a_terminal_alone(monkeypatch, stream, environment, expected):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert text.wants_colour(stream) is expected


def test_json():
    check("race.json", json_.render(make_report()))


def read_back(report):
    """Return what a program reads from the JSON of a report, which fits the schema that is shipped."""
    document = json.loads(json_.render(report))
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "toolkit" / "report" / "schemas" / "race.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, closed(schema))
    assert (document["schema"], document["tool"]) == ("gilscope/race/5", "gilscope race")
    return json_.read(json_.render(report))


def test_json_fits_its_schema_and_has_the_whole_report():
    assert read_back(make_report()) == make_report()


def test_kinds_and_rules_of_the_schema_are_those_of_reports():
    schema = json.loads((ROOT / "toolkit" / "report" / "schemas" / "race.json").read_text())
    race = schema["$defs"]["race"]["properties"]
    assert race["kind"]["enum"] == [*RaceKind]
    assert race["rule"]["enum"] == [None, *RULES]


def test_sarif():
    check("race.sarif", sarif.render(make_report(), notes=True))


def test_sarif_is_what_the_standard_asks_for():
    log = json.loads(sarif.render(make_report(), notes=True))
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules) == 5
    assert len(run["results"]) == 4
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"]
        assert len(result["codeFlows"]) == 2
        flows = [flow for code in result["codeFlows"] for flow in code["threadFlows"]]
        steps = [step["location"] for flow in flows for step in flow["locations"]]
        for location in (*result["locations"], *result["relatedLocations"], *steps):
            physical = location["physicalLocation"]
            assert physical["region"]["startLine"] >= 1
            artifact = physical["artifactLocation"]
            assert artifact.get("uriBaseId") in run["originalUriBaseIds"] or artifact["uri"].startswith("file:///")
            assert not artifact["uri"].startswith("/")
    assert [result["suppressions"][0]["justification"] for result in run["results"] if "suppressions" in result] == [
        HIDDEN.reason]


def test_an_incomplete_check_says_so_in_every_form_and_never_that_there_is_no_race():
    gaps = (CheckGap(process="process 4711", reason=GapReason.DEATHS, count=12),
            CheckGap(process="process 4712", reason=GapReason.THREADS, count=4096))
    report = make_report(races=(), notes=(), lost=(), gaps=gaps)
    assert read_back(report) == report
    for form in (text, sarif):
        shown = form.render(report)
        assert "accesses to 12 objects were forgotten" in shown
        assert "no race" not in shown.lower()
    assert json.loads(sarif.render(report))["runs"][0]["invocations"][0]["executionSuccessful"] is False
