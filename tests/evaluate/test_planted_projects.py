"""Planted projects are never falsely good: the words by which that is told, and some of the projects for real."""

import pytest

from tests.conformance import builds
from tests.evaluate.planted import FOLDER, Truth, evaluated_as_if_fast, falsely_bad, falsely_good, told_by, truths

# Of pure Python and without packages: what takes a compiler or an index has tests of its own.
PLAIN = sorted(name for name in truths() if not (FOLDER / name / "setup.py").exists()
               and name not in {"confread", "hookbuilt", "pricebook"} and not truths()[name].measured)
# One that threads must not run, one that copies must not run, and one with which nothing is wrong.
SOME = {"sensorbuf", "envswitch", "pipeline"}


def said(word, decision="unknown", *, confidence="medium", target="3.14t", code="cost.not-measured"):
    conclusion = {"target": target, "word": word, "confidence": confidence, "reasons": ["why"]}
    facts = [{"code": code, "text": "why"}]
    return told_by({"answer": {"decision": decision, "because": ""}, "conclusions": [conclusion], "facts": facts}, "")


@pytest.mark.newest
def test_every_project_has_its_truth():
    assert {path.parent.name for path in FOLDER.glob("*/load.py")} == truths().keys()
    for truth in truths().values():
        assert truth.planted
        assert truth.never or truth.unsure or truth.no_gain or truth.clean, truth.name
        assert {*truth.never, *truth.unsure} <= {"threads", "subinterpreters", "processes"}


@pytest.mark.newest
@pytest.mark.parametrize(("truth", "told", "false"), [
    ({"never": ("threads",)}, said("READY-WITH-COST", "can-move"),
     ["threads are READY-WITH-COST", '"can-move"']),
    ({"never": ("threads",)}, said("INCONCLUSIVE"), []),
    ({"never": ("processes",)}, said("READY", "move"), []),
    ({"never": ("processes",)}, said("READY", target="processes on 3.14"), ["processes are READY"]),
    ({"unsure": ("threads",)}, said("READY", "move", confidence="high"), ["threads are READY with high confidence"]),
    ({"unsure": ("threads",)}, said("READY", "move"), []),
    ({"no_gain": True}, said("READY", "move"), ['"move"']),
    ({"no_gain": True}, said("READY", "can-move"), [])])
def test_word_is_falsely_good(truth, told, false):
    assert list(falsely_good(Truth(name="app", planted="it", **truth), told)) == false


@pytest.mark.newest
@pytest.mark.parametrize(("told", "false"), [
    (said("INCONCLUSIVE", code="race.unconfirmed"), True), (said("BLOCKED"), True),
    (said("INCONCLUSIVE"), False), (said("READY"), False)])
def test_word_is_falsely_bad(told, false):
    assert bool(list(falsely_bad(Truth(name="app", planted="it", clean=True), told))) is false
    assert not list(falsely_bad(Truth(name="app", planted="it"), told))


@pytest.mark.slow
@pytest.mark.network   # the tests' own requirements
@pytest.mark.builds("free")
@pytest.mark.parametrize("name", [
    name if name in SOME else pytest.param(name, marks=pytest.mark.nightly) for name in PLAIN])
def test_planted_project_is_never_falsely_good(build, tmp_path, name):
    truth, label = truths()[name], build.label
    named = [f"{each.label}={each.executable}" for each in builds.found()]
    told = evaluated_as_if_fast(truth, tmp_path, named, label, budget=120.0, say=print)
    if "could not be installed" in told.output:
        pytest.skip("no index to install pytest from")
    assert told.verdicts, told.output
    false = [*falsely_good(truth, told), *falsely_bad(truth, told)]
    assert not false, f"{name} on {label}: {false}\n{told.output}"
