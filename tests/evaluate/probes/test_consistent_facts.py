"""No fact says that all is well where another fact of the same target says that it is not."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.packages.evidence import Status
from tests.evaluate.made_up import concluded, finding, found, lxml, report, suite

CONTRADICTIONS = [
    ("tests.pass", "tests.turn-gil-on"), ("tests.pass", "tests.none-pass"),
    ("extension-files.need-no-gil", "package.turns-gil-on"), ("extension-files.need-no-gil", "module.turns-gil-on"),
    ("packages.ready", "package.turns-gil-on"), ("packages.ready", "package.no-wheel"),
    ("packages.ready", "module.turns-gil-on"),
]


@pytest.mark.parametrize("build", [
    found(), found(readiness=report(lxml())), found(readiness=report(unowned=("late",))),
    found(readiness=report(finding(Status.NO_WHEEL))), found(tests=suite(gil_end=True)),
    found(tests=suite(passed=0)), found(readiness=report(lxml()), tests=suite(passed=0, gil_end=True)),
], ids=["nothing", "package", "module", "no wheel", "tests", "no test", "package and tests"])
def test_no_fact_contradicts_another(build):
    codes = {fact.code for fact in concluded(build).facts if fact.target == build.build.label}
    assert [pair for pair in CONTRADICTIONS if codes.issuperset(pair)] == []


def test_evidence_is_stated_where_it_is_there():
    codes = {fact.code for fact in concluded(found()).facts}
    assert codes >= {"tests.pass", "extension-files.need-no-gil", "packages.ready"}
    codes = {fact.code for fact in concluded(found(tests=suite(passed=411, failed=1))).facts}
    assert {"tests.pass", "tests.not-all-pass"} <= codes   # that 411 pass is evidence all the same
    broken = replace(found(readiness=report(lxml())), tests=suite(passed=0, gil_end=True))
    assert {"tests.turn-gil-on", "package.turns-gil-on"} <= {fact.code for fact in concluded(broken).facts}
