"""What the screen says of made-up findings that no build at hand need have."""

from dataclasses import replace

import pytest

from gilscope.toolkit.builds.package_installer import NOT_FOUND, WITHOUT_WHEEL
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
from gilscope.toolkit.evaluate.packages.evidence import PackageEvidence, Status
from gilscope.toolkit.evaluate.packages.judge import judge_interpreters, judge_package
from gilscope.toolkit.evaluate.views.doctor import answer_document, document
from gilscope.toolkit.report.terminal import render
from tests.evaluate.packages.test_judge import CRASH, HANG, THING, extension, load, run
from tests.fakes import make_build

BUILD = make_build("3.99t")
COUNTERPART = replace(BUILD, label="3.99", free_threaded=False)


def made(seen, *, reference=COUNTERPART, **fields):
    interpreters, reasons = judge_interpreters(seen)
    finding = Finding(name="thing", version="1.0", requested=True, seen=seen, verdict=judge_package(seen),
                      interpreters=interpreters, interpreter_reasons=reasons)
    return BuildReport(build=BUILD, reference=reference, findings=(finding,), others=0, **fields)


def shown(seen, **fields):
    return render(document([made(seen, **fields)]), width=300)


READY = PackageEvidence(distribution=THING, extensions=(extension(),), run=run(load()))
USED = PackageEvidence(distribution=THING, extensions=(extension(gil="used"),), run=run(load(gil="used"), gil_on=True))


def test_what_the_interpreter_does_alone_is_said_and_not_held_against_packages():
    text = shown(replace(READY, interpreters=(run(load()), CRASH), interpreters_control=(run(), CRASH)))
    assert ("3.99t itself crashed with SIGSEGV while importing thing._c in interpreter 2, with the standard library "
            "alone, too: not held against thing") in text
    assert "In interpreters" not in text


def test_crash_of_the_package_alone_is_its_own():
    text = shown(replace(READY, interpreters=(run(load()), CRASH), interpreters_control=(run(), run())))
    assert "thing 1.0 on 3.99t crashes: crashed with SIGSEGV in interpreter 2" in text
    assert "itself" not in text


def test_import_that_does_not_end_is_said_with_the_time_waited_and_never_as_a_hang():
    text = shown(PackageEvidence(distribution=THING, run=HANG, control=run()))
    assert "thing 1.0  did not end within 9 s\n" in text
    assert text.endswith("thing 1.0 on 3.99t did not end within 9 s while importing thing._c")
    inside = shown(replace(READY, interpreters=(HANG,), interpreters_control=(run(),)))
    assert "thing 1.0  ready (1 file)  did not end within 9 s\n" in inside
    assert inside.endswith("thing 1.0 on 3.99t did not end within 9 s in interpreter 1 while importing thing._c")
    assert "hang" not in text + inside


def test_without_a_counterpart_lost_code_is_in_doubt():
    assert "it cannot be told whether C code was lost" in shown(READY, reference=None)
    assert "cannot be told" not in shown(READY)


def test_pure_wheel_beside_compiled_ones_is_in_doubt():
    said = shown(READY, compiled_elsewhere=("other_one",))
    assert "other_one on 3.99t: the installer took a pure Python wheel" in said


def test_dependencies_are_told_apart_from_the_users_own_packages():
    def finding(name, **fields):
        return Finding(name=name, version="1.0", seen=READY, verdict=judge_package(READY),
                       **dict(zip(("interpreters", "interpreter_reasons"), judge_interpreters(READY), strict=True)),
                       **fields)

    own = finding("zoo", requested=True, way=("zoo",))
    needed = finding("ant", requested=False, way=("zoo", "bee", "ant"))
    report = BuildReport(build=BUILD, reference=COUNTERPART, findings=(needed, own), others=0)
    rows = [line.split("  ") for line in render(document([report]), width=300).splitlines() if "ready" in line]
    assert [[each.strip() for each in row if each] for row in rows] == [
        ["zoo 1.0", "ready (1 file)"], ["ant 1.0", "zoo", "ready (1 file)"]]
    alone = render(document([replace(report, findings=(own,))]), width=300)
    assert "needed by" not in alone


def test_package_that_no_index_has_is_no_blocker():
    absent = PackageEvidence(distribution=None, missing=NOT_FOUND)
    text = shown(absent)
    assert "Not found: thing." in text
    assert "Blocked on" not in text
    assert "Blocked on 3.99t" in shown(PackageEvidence(distribution=None, missing=WITHOUT_WHEEL))
    assert "Blocked on 3.99t" in shown(absent, unowned=("_stray",))


def test_name_that_no_index_has_is_explained_once_for_all_builds():
    report = made(PackageEvidence(distribution=None, missing=NOT_FOUND))
    text = render(answer_document([report, replace(report, build=replace(BUILD, label="3.98t"))]), width=300)
    assert text.count("thing: no package index in use knows a package of this name; look at its spelling") == 1
    assert text.count("spelling") == 1


def test_module_of_no_package_blocks():
    text = shown(READY, unowned=("_stray",))
    assert "_stray on 3.99t turns the GIL on and belongs to no package" in text
    assert text.splitlines()[3].startswith("  Blocked on 3.99t. ")


@pytest.mark.parametrize(("newest", "told"), [
    ({}, "the GIL (as its slots say and seen at import)\n"),
    ({"thing": ("2.0", Status.READY)}, "; 2.0, the newest, mends it"),
    ({"thing": ("2.0", Status.UNKNOWN)}, "; 2.0, the newest, could not be judged"),
    ({"thing": ("2.0", Status.GIL)}, "; 2.0, the newest, turns the GIL on, too"),
    ({"thing": ("1.0", Status.GIL)}, "; 1.0 is the newest"),
])
def test_newest_version(newest, told):
    assert told in shown(USED, newest=newest) + "\n"


def test_nothing_in_the_way_is_said_with_its_limits():
    assert "Nothing stands in the way of free-threading on 3.99t, as far as imports tell." in shown(READY)


def in_short(count, seen=USED, others=0, **fields):
    findings = tuple(Finding(
        name=f"thing{number}", version="1.0", requested=number < 3, seen=seen, verdict=judge_package(seen),
        **dict(zip(("interpreters", "interpreter_reasons"), judge_interpreters(seen), strict=True)))
        for number in reversed(range(count)))
    made = BuildReport(build=BUILD, reference=COUNTERPART, findings=findings, others=others, **fields)
    return render(answer_document([made]), width=100)


def test_answer_fits_and_has_the_users_own_packages_first():
    many = in_short(9)
    assert len(many.splitlines()) <= 14
    assert [line.split()[0] for line in many.splitlines()[7:12]] == [f"thing{number}" for number in range(5)]
    assert many.endswith("9 packages examined, 9 in the way; reasons and all packages: --full")
    assert "needs the GIL" not in many


def test_answer_has_the_reasons_of_few_packages():
    assert "thing0 1.0 on 3.99t turns the GIL on: thing._c needs the GIL" in in_short(1)


def test_answer_where_nothing_is_in_the_way_has_no_table():
    lines = in_short(3, READY).splitlines()
    assert lines[3:] == ["  Nothing stands in the way of free-threading on 3.99t, as far as imports tell.", "",
                         "  3 packages examined; reasons and all packages: --full"]
    assert "4 packages examined" in in_short(3, READY, others=1)   # that one is pure, and has no row
    assert "2 doubts" in in_short(3, READY, compiled_elsewhere=("a", "b"))


@pytest.mark.parametrize(("count", "told"), [(2, True), (3, False)])
def test_answer_has_what_does_not_load_in_interpreters_and_of_few_packages_why(count, told):
    text = in_short(count, replace(READY, interpreters=(run(load()), CRASH), interpreters_control=(run(), run())))
    assert "thing0 1.0  ready (1 file)  crashes" in text
    assert ("thing0 1.0 on 3.99t crashes: " in text) is told
