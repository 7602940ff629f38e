"""Facts about C functions that were called from several threads, and what they come to."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.facts import Effect
from gilscope.toolkit.evaluate.probes import hammered
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding, ExtensionModule, OwnExtensions
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.sections import NO_TIME, Cause
from gilscope.toolkit.hammer.hammering import HammerFailure, HammerReport
from gilscope.toolkit.records import from_plain, to_plain
from tests.evaluate.made_up import PROJECT, concluded, found

ASKED = EvaluationRequest(path=Path("svc"), hammer=20.0, threads=4)
EXTENSIONS = OwnExtensions(modules=(ExtensionModule(
    name="myapp._c", binding=Binding.C_API, backend="setuptools", file="setup.py", line=3),))
CLEAN = HammerReport(threads=4, seconds=20.0, trials=120, called=("label", "Counter", "Counter.add"),
                     left_out=("reset",))
CRASH = HammerFailure(kind="crash", functions=("recall", "remember"), calls=("recall('a')", "remember('a', 'b')"),
                      place="tests/test_c.py:12", detail="SIGSEGV in c_recall", failed=3, trials=40)


def judged(section, request=ASKED, extensions=EXTENSIONS):
    return concluded(found(), sections={"hammer": section}, request=request, extensions=extensions)


def facts(section, **others):
    return {each.code: each for each in judged(section, **others).facts if each.code.startswith("hammer.")}


def test_clean_run_is_a_note_that_does_not_prove_the_code_correct():
    clean = facts(CLEAN)
    assert [*clean] == ["hammer.clean", "hammer.called"]
    assert {each.effect for each in clean.values()} == {Effect.NOTE}
    assert clean["hammer.clean"].text == (
        "20 s of calls from 4 threads (120 trials) found no fault; this does not prove that there is none")
    assert clean["hammer.called"].text == (
        "3 of its 4 functions, types and methods called; without a repeatable call in tests or doctests: reset")


def test_functions_without_time_are_named():
    assert facts(replace(CLEAN, no_time=("scan",)))["hammer.called"].text == (
        "3 of its 5 functions, types and methods called; no time was left for scan; without a repeatable call in tests "
        "or doctests: reset")


def test_functions_that_wait_for_other_threads_are_named():
    assert facts(replace(CLEAN, waiting=("Lock.acquire",)))["hammer.waits"].text == (
        "calls of Lock.acquire on one object hang in threads that take turns, too, as those of a lock do: crashes of "
        "these count, hangs are not judged")


def test_clean_run_changes_no_verdict():
    without = concluded(found(), extensions=EXTENSIONS)
    assert [each.word for each in judged(CLEAN).conclusions] == [each.word for each in without.conclusions]


@pytest.mark.parametrize("kind", ["crash", "hang", "counts-lost", "results-differ"])
def test_failure_blocks_and_says_how_to_repeat_it(kind):
    evaluation = judged(replace(CLEAN, failures=(replace(CRASH, kind=kind),)))
    assert evaluation.conclusions[0].word is Verdict.BLOCKED
    (fact,) = [each for each in evaluation.facts if each.code == f"hammer.{kind}"]
    assert fact.effect is Effect.BLOCKS
    assert "recall, remember: called from 4 threads" in fact.text
    assert "3 of 40 trials" in fact.text
    assert "gilscope evaluate svc --threads 4 --hammer 20s --fresh" in fact.action


def test_what_ran_beside_the_calls_is_named():
    beside = replace(CRASH, beside=("len()", "iteration"))
    assert "as in tests/test_c.py:12, beside len(), iteration)" in facts(
        replace(CLEAN, failures=(beside,)))["hammer.crash"].text
    assert "as in tests/test_c.py:12)" in facts(replace(CLEAN, failures=(CRASH,)))["hammer.crash"].text


def test_several_equal_objects_are_a_caution():
    fact = facts(replace(CLEAN, failures=(replace(CRASH, kind="objects-differ"),)))["hammer.objects-differ"]
    assert fact.effect is Effect.CAUTION


def test_missing_section_is_not_looked_at_where_it_was_asked_for_alone():
    assert facts(NO_TIME)["hammer.not-looked-at"].effect is Effect.NOT_LOOKED_AT
    assert facts(NO_TIME, request=replace(ASKED, hammer=0.0)) == {}
    assert facts(NO_TIME, extensions=OwnExtensions()) == {}


@pytest.mark.parametrize("counts", [{"trials": 0}, {"trials": 2, "slow": 2}])
def test_nothing_called_is_not_looked_at(counts):
    found = facts(replace(CLEAN, problem="ImportError: no", **counts))
    assert [*found] == ["hammer.nothing-called"]
    fact = found["hammer.nothing-called"]
    assert (fact.effect, fact.text, fact.missing.reason) == (Effect.NOT_LOOKED_AT, "ImportError: no", "ImportError: no")


def test_failure_is_shown_although_no_trial_was_counted():
    assert "hammer.crash" in facts(replace(CLEAN, trials=0, problem="did not end", failures=(CRASH,)))


def test_slow_trials_are_a_note_and_no_part_of_what_found_no_fault():
    evaluation = judged(replace(CLEAN, slow=2, slow_functions=("label", "Counter.add")))
    assert [each.word for each in evaluation.conclusions] == [each.word for each in judged(CLEAN).conclusions]
    found = {each.code: each for each in evaluation.facts if each.code.startswith("hammer.")}
    assert [*found] == ["hammer.clean", "hammer.slow", "hammer.called"]
    assert found["hammer.slow"].effect is Effect.NOTE
    assert found["hammer.slow"].text == (
        "2 trials of label, Counter.add took over 10 s while threads ran: slow calls or a busy machine, no fault")
    assert "(118 trials) found no fault" in found["hammer.clean"].text


def test_search_that_was_cut_is_said():
    assert facts(replace(CLEAN, complete=False))["hammer.called"].text == (
        "3 of its 4 functions, types and methods called; finding calls ended before all were tried, and none was found "
        "by then for: reset")
    assert facts(replace(CLEAN, complete=False, left_out=()))["hammer.called"].text.endswith(
        "; finding calls ended before all were tried")


def test_report_survives_the_cache():
    report = replace(CLEAN, failures=(CRASH,))
    assert from_plain(HammerReport, to_plain(report)) == report


def own_build(*names):
    distribution = SimpleNamespace(extensions=tuple((name, "file") for name in names))
    return SimpleNamespace(finding=SimpleNamespace(seen=SimpleNamespace(distribution=distribution)))


def context(folder, *, own=None, left=100.0, sites=("3.14t", "3.15t")):
    project = replace(PROJECT, root=folder)
    made = {"3.14t": NO_TIME, "3.15t": NO_TIME} | {
        label: RunSite(build=label, python=Path(f"/{label}/python"), folders=(folder,)) for label in sites}
    return SimpleNamespace(
        request=ASKED, project=project, labels=("3.14t", "3.15t"),
        own={"3.14t": own_build("myapp._c"), "3.15t": own_build("myapp._c")} if own is None else own), SimpleNamespace(
            sites=lambda: SimpleNamespace(run_sites=made), left=lambda: left, say=lambda _: None)


@pytest.fixture
def asked(monkeypatch):
    calls = []
    monkeypatch.setattr(hammered, "hammer", lambda python, request, **_: calls.append((python, request)) or CLEAN)
    return calls


def test_newest_build_with_the_modules_is_hammered(asked, tmp_path):
    assert hammered.measure(*context(tmp_path)) is CLEAN
    assert asked[0][0] == Path("/3.15t/python")
    assert (asked[0][1].modules, asked[0][1].threads, asked[0][1].seconds) == (("myapp._c",), 4, 20.0)
    hammered.measure(*context(tmp_path, own={"3.14t": own_build("myapp._c"), "3.15t": own_build()}))
    assert asked[1][0] == Path("/3.14t/python")


@pytest.mark.parametrize(("left", "limit"), [(70.0, 70.0), (700.0, 100.0)])
def test_other_programs_prolong_it_within_the_budget(left, limit, asked, tmp_path):
    hammered.measure(*context(tmp_path, left=left))
    assert (asked[0][1].seconds, asked[0][1].limit) == (20.0, limit)


@pytest.mark.parametrize(("missing", "said"), [(4.0, False), (14.0, True)])
def test_time_that_other_programs_took_is_said_if_it_is_much(missing, said):
    busy = facts(replace(CLEAN, missing=missing))
    assert ("hammer.busy" in busy) is said
    assert busy["hammer.clean"].text.startswith(f"{20 - missing:g} s of calls from 4 threads")
    if said:
        assert busy["hammer.busy"].text == (
            "other programs had the cores for 14 of the 20 s that it was to have: a quiet machine or a larger --budget "
            "shows more")


def test_budget_bounds_it(asked, tmp_path):
    hammered.measure(*context(tmp_path, left=7.0))
    assert (asked[0][1].seconds, asked[0][1].limit) == (7.0, 7.0)
    assert hammered.measure(*context(tmp_path, left=1.0)) is NO_TIME


def test_nothing_built_and_nothing_installed_are_reasons(asked, tmp_path):
    assert hammered.measure(*context(tmp_path, own={})).cause is Cause.FAILED
    assert hammered.measure(*context(tmp_path, sites=())).reason.startswith("the project's code is not installed")
    assert asked == []


def test_tests_come_before_pages_and_what_is_built_is_left_out(asked, tmp_path):
    for name in ("README.md", "tests/test_a.py", "tests/data.json", "tests/conftest.py", "src/myapp/test_b.py",
                 "src/myapp/c.py", "build/test_d.py", ".venv/test_e.py", "docs/use.rst"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    hammered.measure(*context(tmp_path))
    assert [name for _, name in asked[0][1].files] == [
        "src/myapp/test_b.py", "tests/conftest.py", "tests/test_a.py", "README.md", "docs/use.rst"]
