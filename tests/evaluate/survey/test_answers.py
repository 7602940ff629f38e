"""Answers of a survey: from what doctor says of one package, kept, and as a report of all."""

import json
import os
import time

import pytest

from gilscope.toolkit.evaluate.survey import cache, report
from gilscope.toolkit.evaluate.survey.answer import PackageAnswer, counts, from_doctor, to_line
from gilscope.toolkit.evaluate.survey.cache import AnswerCache
from gilscope.toolkit.records import from_plain
from gilscope.toolkit.report import terminal
from tests.evaluate.survey.told import package, told

pytestmark = pytest.mark.newest

READY = from_doctor("Thing[x]>=1", {"builds": [told(package("thing"))]}, 2.04)
NEEDY = from_doctor("needy", {"builds": [told(
    package("needy", "pure-python", extensions=0),
    package("old", "turns-gil-on", blocks=True, reasons=["old._c needs the GIL"], newest=["2.0", "ready"]))]}, 1.0)
FAILED = PackageAnswer(package="late", problem="the package index does not answer")


def test_package_is_found_by_its_name_whatever_is_asked_of_it():
    assert [(each.version, each.status, each.files, each.blocked) for each in READY.builds] == [
        ("1.0", "ready", 1, False)]
    assert READY.seconds == 2.0


def test_package_is_held_up_by_what_it_needs():
    assert NEEDY.blocked
    assert [(each.status, [(one.name, one.status) for one in each.in_the_way]) for each in NEEDY.builds] == [
        ("pure-python", [("old", "turns-gil-on")])]
    assert counts([READY, NEEDY], "3.14t") == {"ready": 1, "needs-blocking": 1}


def test_package_that_was_asked_about_comes_first_of_what_is_in_the_way():
    both = [package(name, "turns-gil-on", blocks=True) for name in ("below", "thing")]
    answer = from_doctor("thing", {"builds": [told(*both)]}, 1.0)
    assert [each.name for each in answer.builds[0].in_the_way] == ["thing", "below"]


def test_module_that_belongs_to_no_package_is_in_the_way():
    answer = from_doctor("thing", {"builds": [told(package("thing"), unowned=["stray"])]}, 1.0)
    assert [each.name for each in answer.builds[0].in_the_way] == ["stray"]


@pytest.mark.parametrize("wrong", [{}, {"builds": [{}]}, {"builds": {"3.14t": []}}, {"builds": None}])
def test_what_is_no_answer_of_doctor_is_an_error(wrong):
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_doctor("thing", wrong, 1.0)


def from_line(line):
    return from_plain(PackageAnswer, {name: value for name, value in line.items() if name != "blocked"})


@pytest.mark.parametrize("answer", [READY, NEEDY, FAILED])
def test_line_of_json_holds_all_of_an_answer(answer):
    assert from_line(json.loads(json.dumps(to_line(answer)))) == answer


def test_line_with_a_status_that_is_none_is_no_answer():
    line = to_line(NEEDY)
    line["builds"][0]["in_the_way"][0]["status"] = "upside down"
    with pytest.raises(ValueError, match="upside down"):
        from_line(line)


def test_answers_are_kept_for_a_day(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    AnswerCache(["3.14t"]).put(NEEDY)
    found = AnswerCache(["3.14t"]).get("needy")
    assert (found.kept, found.builds) == (True, NEEDY.builds)
    assert AnswerCache(["3.15t"]).get("needy") is None   # another build
    late = time.time() + cache.FRESH_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: late)
    assert AnswerCache(["3.14t"]).get("needy") is None


def test_what_is_no_answer_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    AnswerCache([]).put(FAILED)
    assert AnswerCache([]).get("late") is None


def test_damaged_or_old_answers_are_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    AnswerCache([]).put(READY)
    (file,) = (tmp_path / "surveys").iterdir()
    file.write_text(file.read_text()[:-5])
    assert AnswerCache([]).get(READY.package) is None
    os.utime(file, (0, 0))
    AnswerCache([])
    assert not file.exists()


def test_report_names_what_blocks_whose_need_it_is_and_what_mends_it():
    shown = " ".join(terminal.render(report.document([READY, NEEDY, FAILED], ["3.14t"])).split())
    assert "doctor: 3 packages on 3.14t" in shown
    assert "needy 1.0 needs old" in shown
    assert ("old 1.0 on 3.14t turns the GIL on: old._c needs the GIL; version 2.0 is ready; needy needs it") in shown
    assert "late: the package index does not answer" in shown
    assert "3.14t: nothing stands in the way of 1 of 2 packages (1 ready, 1 needs one of these)" in shown


def test_hosts_with_builds_that_are_not_alike_are_named():
    other = from_doctor("other", {"builds": [told(package("other"), version="3.14.1")]}, 1.0)
    shown = " ".join(terminal.render(report.document([READY, other], ["3.14t"])).split())
    assert "3.14t is 3.14.0 and 3.14.1: hosts answered for builds that are not alike" in shown
