"""The screen against its golden files (see tests/report/test_golden.py), and what it does not say."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnExtensions
from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
from gilscope.toolkit.evaluate.sections import Contention, Development, LeftOut, Memory, Missing
from gilscope.toolkit.evaluate.verdict import exit_code
from gilscope.toolkit.evaluate.views.screen import answer_document, document, table
from gilscope.toolkit.report import markdown, terminal
from tests.evaluate.made_up import (
    CACHE,
    CLEAN,
    LOOK,
    NOT_DONE,
    QUIET,
    builds_of,
    changed,
    concluded,
    evaluation,
    finding,
    found,
    inside,
    lxml,
    ratio,
    report,
    suite,
    trial,
)
from tests.fakes import make_build
from tests.report.test_golden import check

BUSY = replace(QUIET, effective=1.1, run_queue=0.4, doubts=("2 cores do only 1.10 cores' work at once",))


@pytest.mark.parametrize("width", [80, 100])
def test_terminal(width):
    check(f"evaluate-{width}.txt", terminal.render(document(evaluation()), width=width))


def test_answer():
    answer = terminal.render(answer_document(evaluation()), width=100)
    check("evaluate-answer.txt", answer)
    assert len(answer.splitlines()) <= 24


def test_markdown():
    check("evaluate.md", markdown.render(document(evaluation())))


def test_fits_on_a_screen_with_something_in_every_section():
    lines = terminal.render(document(evaluation()), width=100).splitlines()
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 100


def test_how_gilscope_was_started_is_said_beside_the_machine():
    said = "gilscope was started with nice 5; so were the measured processes"
    assert said in terminal.render(document(evaluation(machine=replace(QUIET, inherited=said))))


def test_busy_machine_shows_no_speed():
    shown = " ".join(terminal.render(document(evaluation(machine=BUSY)), width=100).split())
    assert "not measured: the machine is too busy or too small" in shown
    assert not any(number in shown for number in ("1.50x", "1.60x", "1.25x ", "2.90 times"))
    assert "speed was not judged" in shown
    assert "1.20-1.30x" in shown   # CPU time is told, in a wide interval


def test_what_lasts_is_said_of_the_gain_before_what_a_busy_machine_hides():
    flipped = Missing(reason="the GIL was on at the end of the workload")
    given = evaluation(machine=BUSY)
    first, *others = builds_of(given)
    for measured, words in ((flipped, flipped.reason), (ratio(1.5), "the machine is too busy or too small")):
        gain = replace(first.gain, measured=measured if measured is flipped else {2: measured})
        told = document(changed(given, builds=(replace(first, gain=gain), *others)))
        text = " ".join(terminal.render(told, width=100).split())
        assert f"not measured: {words}" in text


def test_nothing_found_at_all_is_rendered():
    empty = changed(evaluation(), races=NOT_DONE, machine=NOT_DONE, interpreters=(), processes=(),
                    builds=(found(readiness=report(), gain=NOT_DONE, contention=NOT_DONE),))
    assert "Gain" not in terminal.render(document(empty), width=80)


def test_exit_code_is_1_when_every_build_is_blocked():
    given = evaluation()
    first, second, *others = given.conclusions
    assert (first.word, second.word, exit_code(given)) == (Verdict.BLOCKED, Verdict.BLOCKED, 1)
    assert exit_code(replace(given, conclusions=(first, replace(second, word=Verdict.INCONCLUSIVE), *others))) == 0


def test_way_to_a_culprit_names_each_package_once():
    way = ("site-packages/bs4/__init__.py:3", "site-packages/bs4/builder.py:7",
           "lib/python3.14t/importlib/__init__.py:88", "site-packages/six.py:9", "site-packages/lxml/html.py:41")
    given = evaluation()
    first, *others = builds_of(given)
    told = replace(first, tests=replace(first.tests, imports=(replace(first.tests.imports[0], way=way),)))
    shown = " ".join(terminal.render(document(changed(given, builds=(told, *others))), width=100).split())
    assert "through src/myapp/io.py:3 -> bs4 -> six; 7.0, the newest" in shown


def test_waits_of_a_busy_moment_and_uneven_threads_are_said():
    first, *others = builds_of(evaluation())
    uneven = replace(first, gain=replace(first.gain, queued=0.4, threads=3, busiest=0.8))
    shown = " ".join(terminal.render(document(changed(evaluation(), builds=(uneven, *others))), width=100).split())
    assert "which is not to be relied on: they waited 40 % of theirs for a core" in shown
    assert "the busiest of 4 threads takes 80 % of the CPU time" in shown


def shown(**changes):
    """Return the screen of a project with the first build alone, without what it needs no word for."""
    given = evaluation()
    alone = changed(given, builds=(replace(builds_of(given)[0], **changes),), interpreters=(), processes=())
    return " ".join(terminal.render(document(alone), width=100).split())


def newest(version, status):
    return replace(report(lxml()), newest={"lxml": (version, status)})


GAIN = builds_of(evaluation())[0].gain
WHY = Missing(reason="it is short")
UNKNOWN = WheelChoice(name="lxml", version="6.1", kind="not known")


@pytest.mark.parametrize(("changes", "said", "unsaid"), [
    ({"readiness": newest("7.0", Status.GIL)}, "; 7.0, the newest, turns the GIL on, too", "mends"),
    ({"readiness": newest("7.0", Status.UNKNOWN)}, "; 7.0, the newest, could not be judged", "mends"),
    ({"readiness": newest("6.1", Status.GIL)}, "; 6.1 is the newest", "the newest, "),
    ({"readiness": newest("", Status.UNKNOWN)}, "; 6.1 is the newest", "the newest, "),
    ({"readiness": report(lxml())}, "through src/myapp/io.py:3 Gain", "newest"),
    ({"readiness": report(lxml()), "tests": WHY}, "through lxml.html Gain", "io.py"),
    ({"readiness": WHY, "offered": (UNKNOWN, UNKNOWN)}, "2 of 2 packages: the lock names no files", "have a wheel"),
    ({"readiness": WHY, "offered": WHY}, "Gain", "In the lock"), ({"offered": (UNKNOWN,)}, "Gain", "In the lock"),
    ({"gain": replace(GAIN, measured=WHY)}, "so at most 1.90x; not measured: it is short", "measured 1.50x"),
    ({"gain": replace(GAIN, wait_share=None, ceiling=None)}, "3.14t: measured 1.50x", "at most"),
    ({"gain": replace(GAIN, ceiling=None)}, "58 % of their time on 3.14; measured", "at most"),
    ({"gain": replace(GAIN, queued=0.1, threads=2, busiest=0.6)}, "on 3.14; so at most 1.90x", "the busiest of"),
    ({"gain": replace(GAIN, measured={0: ratio(1.5)})}, "measured 1.50x [1.47, 1.53]; importing", "with 0"),
    ({"cost": WHY}, "1.60x [1.57, 1.63] with 4 threads", "importing it"),
    ({"contention": Contention(inflation=None, parked=0.06, places=())}, "3.14t: parked 6 % of their time", "most at"),
    ({"contention": Contention(inflation=1.0, parked=None, places=(CACHE,))},
     "3.14t: 1.00 times the CPU time per operation; most at cache.py:41, while they waited for a core as well",
     "parked"),
    ({"contention": Contention(inflation=None, parked=None, places=())}, "Gain", "Where threads wait"),
])
def test_each_section_says_what_is_known_and_why_the_rest_is_not(changes, said, unsaid):
    found = shown(**changes)
    assert said in found
    assert unsaid not in found


LESS = Memory(here=2**20, there=2**22, process="the largest process of the tests")
TWO = report(lxml(), replace(lxml(), name="other"))
LOST = report(*(replace(finding(Status.LOST), name=name) for name in ("one", "two", "three")))
PURE = report()


@pytest.mark.parametrize(("changes", "title", "cell"), [
    ({"readiness": report(finding(), finding(Status.NO_WHEEL))}, "packages", "4/5"),
    ({"readiness": TWO}, "C files", "0/2"), ({"readiness": PURE}, "C files", "none"),
    ({"readiness": LOST}, "C lost", "one +2"), ({"readiness": TWO}, "GIL off", "no: 2"),
    ({"readiness": report(unowned=("stray",))}, "GIL off", "no: stray"),
    ({"readiness": PURE, "tests": WHY}, "GIL off", "at import"),
    ({"readiness": PURE, "tests": suite()}, "GIL off", "yes"),
    ({"readiness": PURE, "tests": suite(gil_end=None)}, "GIL off", "at import"),
    ({"readiness": PURE, "tests": suite(gil_end=True)}, "GIL off", "no: tests"),
    ({"tests": suite(passed=3, failed=2, errors=1)}, "tests", "3/6"),
    ({"tests": suite(passed=3, left_out=(LeftOut(file="tests/test_a.py", why="no"),))}, "tests", "3/3"),
    ({"tests": suite(passed=3, failed=None, errors=None)}, "tests", "3/3"),
    ({"tests": suite(passed=None, ending="3")}, "tests", "exit code 3"),
    ({"tests": suite(passed=None, ending="crash: SIGSEGV: more")}, "tests", "crash"),
    ({"cost": WHY}, "memory", ""), ({"cost": replace(builds_of(evaluation())[0].cost, memory=None)}, "memory", ""),
    ({}, "memory", "+12.0 MiB"),
    ({"cost": replace(builds_of(evaluation())[0].cost, memory=LESS)}, "memory", "-3.0 MiB"),
])
def test_cells_of_the_table(changes, title, cell):
    given = evaluation()
    alone = changed(given, builds=(replace(builds_of(given)[0], **changes),), interpreters=(), processes=())
    shown = table(alone)
    assert shown.rows[0][[column.title for column in shown.columns].index(title)].value == cell


def test_interpreters_are_counted_and_their_memory_is_their_builds():
    given = evaluation()
    newer = replace(inside(finding()), build=make_build("3.15"), trial=trial(memory=20480))
    newest = replace(inside(), build=make_build("3.16"), readiness=WHY)
    shown = table(changed(given, builds=(), processes=(), interpreters=(inside(finding()), newer, newest)))
    assert [(row[2].value, row[-1].value) for row in shown.rows] == [("4/4", ""), ("4/4", "+20.0 KiB"), ("-", "")]


def test_no_race_is_told_of_c_code():
    own = OwnExtensions(unsure=("setup.py may make more",))
    told = [terminal.render(document(changed(evaluation(), races=CLEAN, extensions=each)))
            for each in (own, OwnExtensions())]
    assert ["C code is not watched" in " ".join(each.split()) for each in told] == [True, False]


def test_no_race_is_no_promise():
    clean = document(changed(evaluation(), races=CLEAN))
    assert "none in the project's tests on 3.14t; what they did not run" in terminal.render(clean, width=120)


def test_where_no_race_was_is_said_with_what_could_have_shown_one():
    looks = (replace(LOOK, of="workload", workers=4, calls=100), replace(LOOK, threads=False),
             replace(LOOK, of="tests at once", workers=4, alone=tuple(f"test_{name}: why" for name in "abcde")))
    shown = " ".join(terminal.render(document(changed(evaluation(), races=replace(CLEAN, looks=looks))),
                                     width=120).split())
    assert ("none in the workload, called 100 times by 4 threads on 3.14t and in the project's tests on 3.14t, which "
            "start no threads and in the project's tests, each in 4 threads at once on 3.14t; what they did") in shown
    assert "5 tests cannot be run in several threads and ran in one: test_a: why, test_b: why," in shown


def test_development_is_a_section_of_its_own():
    development = Development(packages=("mypy",) * 2, extras=("excel", "redis"), lacking={"3.14t": ("cryptography",)})
    shown = " ".join(terminal.render(document(changed(evaluation(), development=development)), width=120).split())
    assert ("No part of the verdict 2 packages are for development alone: mypy, mypy 3.14t: tests that "
            "need cryptography cannot be run there: no such package could be installed "
            "extras excel, redis: --extra excel judges the project with it") in shown


def test_gil_that_was_off_after_imports_alone_has_a_footnote():
    shown = " ".join(terminal.render(document(concluded(found(tests=NOT_DONE))), width=120).split())
    assert "off after the imports; whether it is at the end of the project's tests is not known" in shown


def test_cost_by_the_tests_has_a_footnote():
    first, *others = builds_of(evaluation())
    by_tests = replace(first, cost=replace(first.cost, by="tests"))
    shown = " ".join(terminal.render(document(changed(evaluation(), builds=(by_tests, *others))), width=100).split())
    assert "CPU time of the tests, their start with it" in shown


def test_what_was_left_out_is_named_once_for_all_builds():
    out = suite(left_out=(LeftOut(file="tests/test_x.py", why="ImportError: no"),))
    text = shown(tests=out)
    assert "Tests left out 3.14t: tests/test_x.py cannot be collected: ImportError: no" in text
    assert "without 1 file of tests, which cannot be collected, see below" in text
    assert "of tests, which cannot be collected" not in shown(tests=suite())
    both = shown(tests=out, reference_tests=out)
    assert "cannot be collected, with the GIL as well: ImportError: no" in both
    assert both.count("ImportError: no") == 1


def test_file_that_only_the_build_without_the_gil_collects_is_named():
    out = suite(build="3.14", left_out=(LeftOut(file="tests/test_x.py", why="AssertionError"),))
    assert ("Tests left out 3.14t: tests/test_x.py runs here and cannot be collected on 3.14: AssertionError; it "
            "counts in tests and races, not in what one thread costs") in shown(reference_tests=out)


def test_project_that_needs_nothing_says_so():
    given = evaluation()
    alone = changed(given, project=replace(given.project, requirements=(), lock=None))
    assert "no requirements; tests: python -m pytest -q" in terminal.render(document(alone), width=100)
    silent = changed(alone, project=replace(alone.project, requirements_known=False))
    assert "requirements not known; tests: python" in terminal.render(document(silent), width=100)


def test_what_was_measured_before_is_said():
    again = changed(evaluation(), kept=("the project's tests", "data races"), kept_since=0.0)
    text = " ".join(terminal.render(document(again), width=100).split())
    assert "as nothing has changed: the project's tests; data races (--fresh measures anew)" in text
    assert "--fresh" not in terminal.render(document(evaluation()), width=100)


def test_answer_comes_first():
    lines = terminal.render(document(evaluation()), width=100).splitlines()
    assert lines[3] == "Should we move?"
    assert lines[4].startswith("  Not yet: on 3.14t")


@pytest.mark.parametrize(("tests", "off"), [
    (suite(), "yes"), (suite(passed=None, failed=None, ending="4"), "at import"),
    (suite(passed=0, errors=3, ending="2"), "at import"), (suite(passed=None, gil_end=True, ending="1"), "no: tests")])
def test_gil_is_said_to_be_off_where_something_ran(tests, off):
    shown = table(concluded(found(tests=tests)))
    column = [each.title for each in shown.columns].index("GIL off")
    assert shown.rows[0][column].value == off
