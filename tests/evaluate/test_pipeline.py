"""The steps of an evaluation: what does not fit or cannot be had is a reason in its place, never an exception."""

import importlib
import re
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path

import pytest

from gilscope.toolkit.builds.package_installer import WITHOUT_WHEEL
from gilscope.toolkit.errors import BadFileError, BuildError, ToolkitError
from gilscope.toolkit.evaluate import run_sites, shared_sections
from gilscope.toolkit.evaluate.cache import EvaluationCache
from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.packages import scratch
from gilscope.toolkit.evaluate.packages.doctor import BuildReport
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.packages.scratch import ScratchEnvironment
from gilscope.toolkit.evaluate.pipeline import Evaluator
from gilscope.toolkit.evaluate.probes import SECTIONS
from gilscope.toolkit.evaluate.project.cost_and_gain import NO_WORKLOAD, CostsAndGains
from gilscope.toolkit.evaluate.project.extensions import find
from gilscope.toolkit.evaluate.project.installing import Installation
from gilscope.toolkit.evaluate.project.racing import races as looking
from gilscope.toolkit.evaluate.request import WAIT_QUIET, EvaluationRequest
from gilscope.toolkit.evaluate.sections import BuildSpeed, Cause, Development, LeftOut, Missing, Place
from gilscope.toolkit.evaluate.verdict import exit_code
from gilscope.toolkit.evaluate.views.json_document import plain
from gilscope.toolkit.evaluate.views.screen import document
from gilscope.toolkit.measure.machine_lock import WAITING, MachineLock
from gilscope.toolkit.report import terminal
from tests.evaluate.made_up import CLEAN, QUIET, finding, found, report, suite, trial
from tests.fakes import make_build

FREE, COUNTERPART = make_build("3.14t"), make_build("3.14")
NO_TIME = "no time was left in the budget"
LOCK = """
lock-version = "1.0"
created-by = "some tool"
[[packages]]
name = "thing"
version = "1.0"
wheels = [{path = "thing-1.0-py3-none-any.whl", hashes = {sha256 = "aa"}}]
[[packages]]
name = "other"
version = "2.0"
wheels = [{path = "other-2.0-cp27-cp27m-win32.whl", hashes = {sha256 = "aa"}}]
"""


class Steps:
    """What every step would find, and how long it takes; made up."""

    def __init__(self):
        self.now = 0.0
        self.takes = {}          # step -> seconds
        self.asked = []
        self.found = {"3.14t": report(finding()), "3.14": replace(report(finding()), build=COUNTERPART)}
        self.fails = {}          # step -> exception
        self.meanwhile = {}      # step -> what happens then
        self.newest = 0
        self.requests = []       # what was to be installed: to be judged, and to run the tests with
        self.machine = QUIET

    def step(self, name):
        self.asked.append(name)
        self.meanwhile.pop(name, lambda: None)()
        self.now += self.takes.get(name, 0.0)
        if name in self.fails:
            raise self.fails[name]

    def diagnose(self, request, builds, *_):
        self.requests.append(("judged", request.requirements))
        self.step("readiness")
        return tuple(self.found[build.label] for build in builds if build.label in self.found)

    def with_newest(self, reports, *_, **__):
        self.step("newest")
        return reports

    def prepare(self, request, builds, *_):
        self.requests.append(("tests", request.requirements))
        self.step("run_sites")
        return {build.label: ScratchEnvironment(folder=Path("/scratch") / build.label,
                                                distributions=()) for build in builds}

    def try_interpreters(self, python, modules, *, path, limit):
        self.step("trial")
        return trial(modules=tuple(modules))

    def run_tests(self, project, run_site, *, limit):
        if limit <= 0:
            return Missing(reason=NO_TIME, cause=Cause.TIME)
        self.step("tests")
        return suite(build=run_site.build, gil_end=not run_site.build.endswith("t"), lacking=run_site.lacking)

    def comparing(self, project, workload, builds, counterparts, *, left, say, hold_machine):
        self.left, self.hold_machine = left, hold_machine
        return self

    def compare(self, run_sites, tests):
        if self.left() > 0:
            with self.hold_machine():
                self.step("speed")
        speed = BuildSpeed(cost=found().cost, gain=NO_WORKLOAD, contention=NO_WORKLOAD)
        labels = [label for label in run_sites if label != COUNTERPART.label]
        return CostsAndGains(machine=self.machine, others=NO_WORKLOAD, models_compared=False,
                             speed=dict.fromkeys(labels, speed))

    def check_races(self, project, run_site, *, limit, threads=0):
        if limit <= 0:
            return Missing(reason=NO_TIME, cause=Cause.TIME)
        self.step("races")
        return CLEAN


@pytest.fixture
def steps(monkeypatch):
    made = Steps()
    for name in ("diagnose", "with_newest", "try_interpreters", "run_tests"):
        monkeypatch.setattr(shared_sections, name, getattr(made, name))
    monkeypatch.setattr(looking, "check_races", made.check_races)
    monkeypatch.setattr(scratch, "prepare", made.prepare)
    monkeypatch.setattr(shared_sections, "CostAndGainMeasurer", made.comparing)
    monkeypatch.setattr(shared_sections, "wait_quiet", lambda limit, say: made.step("wait"))
    monkeypatch.setattr(run_sites, "install_project", lambda *_, **__: Installation())
    return made


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "app.py").write_text("def f(): ...\n")
    (tmp_path / "requirements.txt").write_text("thing\n")
    return tmp_path


def evaluate(steps, folder, builds=(FREE,), at_hand=(FREE, COUNTERPART), **asked):
    said = []
    evaluator = Evaluator(EvaluationRequest(path=folder, **asked), builds, at_hand, said.append,
                          clock=lambda: steps.now)
    return evaluator.run(), said


def announced(said):
    """Return the announcement of each section, without its number."""
    return [match[1] for line in said if (match := re.match(r"\d+/\d+ (.*)", line))]


def test_all_steps_in_their_order(steps, folder):
    found, _ = evaluate(steps, folder)
    assert steps.asked == ["readiness", "newest", "readiness", "run_sites", "trial", "tests", "tests", "races",
                           "speed"]
    assert [(each.target, each.word) for each in found.conclusions] == [
        ("3.14t", Verdict.READY), ("subinterpreters on 3.14", Verdict.INCONCLUSIVE)]


@pytest.mark.parametrize(("step", "missing"), [
    ("readiness", {"tests", "races"}), ("newest", {"tests", "races"}), ("run_sites", {"tests", "races"}),
    ("tests", {"races"}), ("races", set())])
def test_budget_that_runs_out_leaves_out_what_follows(steps, folder, step, missing):
    steps.takes[step] = 700.0
    found, _ = evaluate(steps, folder)
    sections = {"tests": found.tests["3.14t"], "races": found.races}
    assert {name for name, each in sections.items() if isinstance(each, Missing)} == missing
    assert all(sections[name].reason == NO_TIME for name in missing)
    assert isinstance(found.packages["3.14t"], BuildReport)
    assert found.seconds >= 700.0
    if "tests" in missing:
        assert (found.conclusions[0].word, found.conclusions[0].confidence) == (Verdict.INCONCLUSIVE, "low")


@pytest.mark.parametrize(("workload", "gain"), [("app:f", NO_TIME), (None, NO_WORKLOAD.reason)])
def test_cost_and_gain_without_time_are_missing_and_the_gain_only_with_a_workload(steps, folder, workload, gain):
    steps.takes["races"] = 700.0
    found, _ = evaluate(steps, folder, workload=workload)
    assert "speed" not in steps.asked
    assert (found.speed["3.14t"].cost.reason, found.speed["3.14t"].gain.reason) == (NO_TIME, gain)


def test_workload_that_was_not_checked_for_races_is_not_known(steps, folder):
    steps.takes["tests"] = 700.0
    found, _ = evaluate(steps, folder, workload="app:f")
    assert "races.not-known" in {fact.code for fact in found.facts if fact.target == "3.14t"}


def test_budget_of_nothing_is_inconclusive(steps, folder):
    steps.now = 0.0
    found, _ = evaluate(steps, folder, budget=0.0)
    assert steps.asked == []
    assert {each.word for each in found.conclusions} == {Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("step", ["trial", "speed"])
def test_who_measures_on_this_machine_is_waited_for(steps, folder, tmp_path_factory, monkeypatch, step):
    machine, said, other = str(tmp_path_factory.mktemp("machine")), [], ExitStack()
    monkeypatch.setenv("GILSCOPE_MACHINE", machine)
    before = "run_sites" if step == "trial" else "races"

    def measure_elsewhere():
        other.enter_context(MachineLock(alone=True, waiting=lambda: None, folder=machine).hold())

    def say(text):
        said.append(text)
        if text == WAITING:
            assert step not in steps.asked
            steps.now += 1000.0   # it takes nothing from the budget
            other.close()

    steps.meanwhile = {before: measure_elsewhere}
    Evaluator(EvaluationRequest(path=folder), (FREE,), (FREE, COUNTERPART), say, clock=lambda: steps.now).run()
    assert said.count(WAITING) == 1
    assert steps.asked[-1] == "speed"


def test_newer_versions_are_not_installed_offline_nor_in_the_time_of_the_tests(steps, folder):
    evaluate(steps, folder, offline=True)
    steps.takes["readiness"] = 301.0
    evaluate(steps, folder)
    assert "newest" not in steps.asked


def test_project_itself_is_not_built_offline(steps, folder, monkeypatch):
    tried = []
    monkeypatch.setattr(run_sites, "install_project", lambda *_, **__: tried.append(1) or Installation())
    _, said = evaluate(steps, folder, offline=True)
    assert tried == []
    assert ("3.14t: the project itself is imported from its folder, not installed: --offline builds nothing, "
            "because what builds it would be downloaded") in said
    evaluate(steps, folder)
    assert tried == [1, 1]


def test_package_in_a_namespace_package_is_imported_from_its_sources_first(steps, tmp_path, monkeypatch):
    """So that a test runner finds a test's package where the test is."""
    (tmp_path / "src" / "acme" / "fast").mkdir(parents=True)
    (tmp_path / "src" / "acme" / "fast" / "__init__.py").write_text("")
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'acme.fast'\n")
    folders = []
    monkeypatch.setattr(shared_sections, "run_tests",
                        lambda project, site, **_: folders.append(site.folders) or suite())
    evaluate(steps, tmp_path)
    assert [(each[0], each[1].name) for each in folders] == [
        (tmp_path / "src", "3.14t"), (tmp_path / "src", "3.14")]
    (tmp_path / "src" / "acme" / "__init__.py").write_text("from acme import fast\n")
    folders.clear()
    evaluate(steps, tmp_path)
    assert [[each.name for each in some] for some in folders] == [["3.14t"], ["3.14"]]


def test_project_is_not_built_again_where_the_budget_ended_with_the_build(steps, folder, tmp_path_factory, monkeypatch):
    cache, built = tmp_path_factory.mktemp("cache"), []
    monkeypatch.setenv("GILSCOPE_CACHE", str(cache))
    (folder / "setup.py").write_text("from setuptools import *\nsetup(ext_modules=[Extension('app._c', ['c.c'])])\n")
    for label in ("3.14t", "3.14"):
        (cache / label).mkdir()
    monkeypatch.setattr(scratch, "prepare", lambda _, builds, *__: {
        build.label: ScratchEnvironment(folder=cache / build.label, distributions=()) for build in builds})

    def install(_project, environment, target):
        target.mkdir()
        (target / "app_c.so").write_text(environment.name)
        built.append(environment.name)
        steps.now += 300.0
        return Installation(log="cc c.c")

    monkeypatch.setattr(run_sites, "install_project", install)
    monkeypatch.setattr(run_sites, "own_builds", lambda _, places, __: seen.append(
        {label: (each.installation, (each.target / "app_c.so").read_text()) for label, each in places.items()}) or {})
    seen = []
    free, counterpart = (replace(build, base_executable=str(cache / "state")) for build in (FREE, COUNTERPART))
    (cache / "state").write_text("")

    def call(**asked):
        built.clear()
        Evaluator(EvaluationRequest(path=folder, budget=500.0), (free,), (free, counterpart), lambda _: None,
                  clock=lambda: steps.now,
                  open_cache=lambda project, builds: EvaluationCache(project.root, builds, **asked)).run()
        return sorted(built), "tests" in steps.asked

    assert call() == (["3.14", "3.14t"], False)
    assert call() == ([], True)
    (cache / "evaluations").rename(cache / "gone")   # what was told of it, not the build itself
    assert call() == ([], True)
    assert seen[-1] == seen[0] == {label: (Installation(log="cc c.c"), label) for label in ("3.14t", "3.14")}
    assert call(fresh=True)[0] == ["3.14", "3.14t"]
    (folder / "c.c").write_text("int changed;")
    assert call()[0] == ["3.14", "3.14t"]


def test_installer_that_fails_is_a_reason(steps, folder):
    steps.fails = {"readiness": BuildError("no pip"), "run_sites": BuildError("no pip")}
    found, _ = evaluate(steps, folder)
    assert found.packages["3.14t"] == Missing(reason="no pip", cause=Cause.FAILED)
    assert exit_code(found) == 3   # nobody knows anything
    assert found.tests["3.14t"] == Missing(reason="no pip", cause=Cause.FAILED)   # the next call tries again
    assert found.races == Missing(reason="no pip", cause=Cause.FAILED)


def test_newer_versions_that_cannot_be_had_are_said_and_change_nothing(steps, folder):
    steps.fails = {"newest": BuildError("no network")}
    found, said = evaluate(steps, folder)
    assert found.conclusions[0].word is Verdict.READY
    assert "newer versions could not be looked at: no network" in said


def test_nothing_installed_before_is_inconclusive_offline(steps, folder, monkeypatch):
    steps.found = {}
    monkeypatch.setattr(scratch, "prepare", lambda *_: {})
    found, _ = evaluate(steps, folder, offline=True)
    assert found.conclusions[0].word is Verdict.INCONCLUSIVE
    assert "call it once without --offline" in found.packages["3.14t"].reason
    assert "call it once without --offline" in found.tests["3.14t"].reason


def test_lock_is_told_at_once_as_metadata(steps, folder):
    (folder / "pylock.toml").write_text(LOCK)
    found, said = evaluate(steps, folder)
    assert said[0] == (
        "3.14t: 1 of 2 packages of the lock have a wheel; no wheel: other (metadata only, not a verdict)")
    assert [each.kind for each in found.offered["3.14t"]] == ["nothing", "pure"]


POETRY_LOCK = """
[[package]]
name = "thing"
version = "1"
groups = ["main"]
[package.dependencies]
below = "*"
[[package]]
name = "below"
version = "1"
groups = ["main"]
[[package]]
name = "pytest"
version = "8"
groups = ["test"]
[package.dependencies]
pluggy = "*"
[[package]]
name = "pluggy"
version = "1"
groups = ["test"]
[[package]]
name = "cryptography"
version = "46"
groups = ["lint"]
[metadata]
lock-version = "2.1"
"""


def test_packages_for_development_decide_no_verdict(steps, folder):
    (folder / "poetry.lock").write_text(POETRY_LOCK)
    found, _ = evaluate(steps, folder)
    judged = {requirements for what, requirements in steps.requests if what == "judged"}
    assert judged == {("below==1", "thing==1")}
    (tests,) = (requirements for what, requirements in steps.requests if what == "tests")
    assert set(tests) == {"below==1", "thing==1", "pytest==8", "pluggy==1", "pytest"}   # no linter's
    assert found.development == Development(
        packages=("cryptography", "pluggy", "pytest"), extras=(), lacking={})


def test_what_the_tests_need_is_for_development_without_a_lock_too(steps, folder):
    (folder / "requirements-dev.txt").write_text("thing\nlinter>=1\n")
    assert evaluate(steps, folder)[0].development.packages == ("linter",)
    assert {requirements for what, requirements in steps.requests if what == "judged"} == {("thing",)}


def test_requirement_that_an_old_lock_lacks_is_judged_all_the_same(steps, folder):
    (folder / "requirements.txt").write_text("thing\nnewcomer>=2\n")
    (folder / "poetry.lock").write_text(POETRY_LOCK)
    evaluate(steps, folder)
    assert ("judged", ("below==1", "thing==1", "newcomer>=2")) in steps.requests


def test_what_only_the_tests_lack_is_said_apart(steps, folder, monkeypatch):
    made = ScratchEnvironment(folder=folder, distributions=(),
                              missing=dict.fromkeys(("thing", "linter"), WITHOUT_WHEEL))
    monkeypatch.setattr(scratch, "prepare", lambda *_: {"3.14t": made, "3.14": made})
    found, _ = evaluate(steps, folder)
    assert found.development.lacking == {"3.14t": ("linter",), "3.14": ("linter",)}


def test_extra_of_the_project_is_judged_when_asked_for(steps, folder):
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "app"\ndependencies = ["thing"]\n[project.optional-dependencies]\nxml = ["lxml"]\n')
    assert evaluate(steps, folder)[0].development.extras == ("xml",)
    assert ("judged", ("thing",)) in steps.requests
    assert evaluate(steps, folder, extras=("xml",))[0].development is None
    assert ("judged", ("thing", "lxml")) in steps.requests


def test_project_without_requirements_has_nothing_in_the_way(steps, folder):
    (folder / "requirements.txt").unlink()
    found, _ = evaluate(steps, folder)
    assert "readiness" not in steps.asked
    assert found.packages["3.14t"].findings == ()
    assert found.conclusions[0].word is Verdict.READY


def test_project_without_tests_is_inconclusive(steps, folder):
    (folder / "tests").rmdir()
    found, _ = evaluate(steps, folder)
    assert found.conclusions[0].word is Verdict.INCONCLUSIVE
    assert "run_sites" not in steps.asked


def test_build_without_a_counterpart(steps, folder):
    found, _ = evaluate(steps, folder, at_hand=(FREE,), workload=None)
    assert found.with_gil == ()
    assert "no build like 3.14t with a GIL" in found.tests_with_gil("3.14t").reason
    assert [each.target for each in found.conclusions] == ["3.14t"]


def test_builds_of_one_minor_version_share_a_counterpart(steps, folder):
    other = replace(FREE, label="3.14t-debug")
    steps.found[other.label] = replace(report(finding(Status.CRASH)), build=other)
    found, _ = evaluate(steps, folder, builds=(FREE, other), at_hand=(FREE, other, COUNTERPART))
    assert [each.target for each in found.conclusions] == ["3.14t", "3.14t-debug", "subinterpreters on 3.14"]
    assert [each.word for each in found.conclusions] == [Verdict.READY, Verdict.BLOCKED, Verdict.INCONCLUSIVE]


@pytest.mark.parametrize(("asked", "error", "words"), [
    ({"tests": "pytest 'open"}, ToolkitError, "No closing quotation"),
    ({"lock": "absent.lock"}, ToolkitError, "there is no such file"),
    ({"workload": "gone.py"}, ToolkitError, "gone.py: there is no such script"),
    ({"lock": "damaged.lock"}, BadFileError, "cannot be read"),
])
def test_mistakes_of_the_user_are_said(steps, folder, asked, error, words):
    (folder / "damaged.lock").write_text("[")
    if "lock" in asked:
        asked = {"lock": folder / asked["lock"]}
    with pytest.raises(error, match=words):
        evaluate(steps, folder, **asked)


@pytest.fixture
def again(steps, folder, tmp_path_factory, monkeypatch):
    """Give a function that evaluates as the next call would, and returns what was found, asked and said."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    python = elsewhere / "python"
    python.write_text("")
    monkeypatch.setenv("GILSCOPE_CACHE", str(elsewhere / "cache"))

    def go(*, look="", fresh=False, sections=SECTIONS, **asked):
        steps.asked.clear()
        said = []
        builds = [replace(each, base_executable=str(python)) for each in (FREE, COUNTERPART)]
        evaluator = Evaluator(EvaluationRequest(path=folder, **asked), builds[:1], builds, said.append,
                              clock=lambda: steps.now, sections=sections,
                              open_cache=lambda project, builds: EvaluationCache(project.root, builds, fresh=fresh))
        return evaluator.explain(look) if look else evaluator.run(), list(steps.asked), said

    return go


def test_nothing_is_measured_twice(again):
    first, _, _ = again()
    second, asked, said = again()
    assert asked == []
    assert second.conclusions == first.conclusions
    assert len(second.kept) == len(announced(said))
    assert first.kept == ()
    assert "the project's tests: nothing has changed since it was measured; next: data races" in announced(said)


@pytest.mark.parametrize(("asked", "measured"), [
    ({"threads": 4}, ["run_sites", "races"]), ({"budget": 300.0}, []), ({"budget": 900.0}, ["run_sites", "speed"]),
    ({"workload": "app:f"}, ["run_sites", "trial", "races", "speed"]),
    ({"sdists": True}, ["readiness", "newest", "run_sites", "trial", "tests", "races", "speed"])])
def test_option_has_only_those_steps_measured_again_that_depend_on_it(again, monkeypatch, steps, asked, measured):
    monkeypatch.setattr(shared_sections, "look_for_races", lambda *_, **__: steps.step("races") or CLEAN)
    again()
    assert list(dict.fromkeys(again(**asked)[1])) == measured


def test_time_for_the_rounds_is_what_preparing_the_sites_leaves(again, steps):
    again()
    steps.takes["run_sites"] = 1000.0
    found, asked, _ = again(budget=900.0)
    assert (asked, found.speed["3.14t"].cost.reason) == (["run_sites"], NO_TIME)


def test_results_with_a_larger_budget_are_found_without_naming_it(again):
    found, _, _ = again(budget=900.0)
    assert again(look="lxml")[0].speed == found.speed
    assert again()[1] == []


def test_changed_file_is_measured_anew(again, folder):
    again()
    (folder / "app.py").write_text("def g(): ...\n")
    _, asked, _ = again()
    assert "tests" in asked
    assert "speed" in asked
    assert again(fresh=True)[1][:1] == ["readiness"]


def test_what_was_seen_offline_is_not_taken_for_more(again):
    again(offline=True)
    assert "tests" in again()[1]


def test_other_tests_are_run_and_packages_are_not_looked_at_again(again):
    again()
    _, asked, _ = again(tests="pytest -x")
    assert asked == ["run_sites", "tests", "tests", "races", "speed"]


def test_what_a_busy_machine_or_a_short_budget_left_open_is_measured_again(again, steps):
    steps.machine = replace(QUIET, doubts=("processes waited",))
    again()
    _, asked, said = again()
    assert asked == ["run_sites", "speed"]
    assert any(line.startswith("cost and gain once more, as before: processes waited") for line in announced(said))
    assert again(wait_quiet=60.0)[1] == ["run_sites", "wait", "speed"]


def test_waiting_takes_nothing_from_the_budget(again, steps):
    steps.takes["wait"] = 5000.0
    seconds = again(wait_quiet=60.0)[0].seconds
    assert seconds < 5000.0


def test_looking_runs_no_tests(again):
    found, asked, _ = again(look="lxml")
    assert set(asked) == {"readiness", "newest"}
    assert found.tests["3.14t"].reason == "not run for --explain"
    again()
    found, asked, _ = again(look="lxml")
    assert asked == []
    assert found.tests["3.14t"].passed == 412


@pytest.mark.parametrize(("name", "built"), [("lxml", False), ("app._fast", True), ("extensions", True)])
def test_looking_builds_the_project_for_its_own_modules_alone(again, folder, steps, name, built):
    (folder / "setup.py").write_text("from setuptools import Extension, setup\n"
                                     "setup(ext_modules=[Extension('app._fast', ['fast.c'])])\n")
    (folder / "fast.c").write_text("")
    _, asked, _ = again(look=name)
    assert ("run_sites" in asked) is built


@pytest.fixture
def sources_read(folder, monkeypatch):
    """Give a project an extension module, and return what is appended to each time its sources are read."""
    (folder / "setup.py").write_text("from setuptools import Extension, setup\n"
                                     "setup(ext_modules=[Extension('app._fast', ['fast.c'])])\n")
    (folder / "fast.c").write_text("")
    read, found = [], shared_sections.find_extensions
    monkeypatch.setattr(shared_sections, "find_extensions",
                        lambda *words, **named: read.append(1) or found(*words, **named))
    return read


def test_sources_are_read_in_a_step_of_their_own_and_once(again, sources_read):
    assert any(line.startswith("the sources of its own extension modules") for line in announced(again()[2]))
    found, _, said = again()
    assert sources_read == [1]
    assert [each.file for each in found.extensions.sources] == ["fast.c"]
    assert ("the sources of its own extension modules: nothing has changed since it was measured; next: the "
            "project's own extension modules") in announced(said)


def test_build_files_are_parsed_once(again, sources_read, monkeypatch):
    parsed, named = [], find.named_modules
    monkeypatch.setattr(find, "named_modules", lambda files: parsed.append(1) or named(files))
    again()
    assert (sources_read, parsed) == ([1], [1])


def test_sources_are_not_read_to_explain_a_package_or_when_no_time_is_left(again, sources_read):
    again(look="lxml")
    found, _, _ = again(budget=0.0)
    assert sources_read == []
    assert (found.extensions.sources, found.extensions.cut.cause) == ((), Cause.TIME)
    assert again(look="app._fast")[0].extensions.sources
    assert sources_read == [1]


def test_what_cannot_be_collected_is_left_out_of_all_that_follows(steps, folder, monkeypatch):
    seen = []
    out = (LeftOut(file="tests/test_x.py", why="no"),)
    tests = suite(left_out=out)
    monkeypatch.setattr(shared_sections, "run_tests",
                        lambda project, run_site, *, limit: replace(tests, build=run_site.build))
    monkeypatch.setattr(looking, "check_races",
                        lambda project, *_, **__: seen.append(project.tests) or CLEAN)
    evaluate(steps, folder)
    assert seen == [("python", "-m", "pytest", "-q", "--ignore=tests/test_x.py")]


def test_file_that_only_the_build_with_the_gil_cannot_collect_is_checked_for_races(steps, folder, monkeypatch):
    seen = []
    tests = suite(left_out=(LeftOut(file="tests/test_threads.py", why="needs a build without a GIL"),))
    monkeypatch.setattr(shared_sections, "run_tests", lambda project, run_site, *, limit: replace(
        tests if run_site.build == "3.14" else suite(), build=run_site.build))
    monkeypatch.setattr(looking, "check_races", lambda project, *_, **__: seen.append(project.tests) or CLEAN)
    found, _ = evaluate(steps, folder)
    assert seen == [("python", "-m", "pytest", "-q")] == [found.collected.tests]


def test_each_part_is_announced_with_what_comes_next(steps, folder):
    _, said = evaluate(steps, folder)
    count = len(announced(said))
    numbers = [line.partition(" ")[0] for line in said if re.match(r"\d+/", line)]
    assert numbers == [f"{number}/{count}" for number in range(1, count + 1)]
    assert "data races; next: cost and gain" in announced(said)


def test_command_that_is_told_has_what_was_asked(steps, folder):
    found, _ = evaluate(steps, folder, tests="pytest -x", budget=90.0)
    assert found.request.command() == f"gilscope evaluate {folder} --tests 'pytest -x' --budget 90s"


def test_command_that_is_told_asks_about_the_same_builds(steps, folder):
    found, _ = evaluate(steps, folder, labels="3.14t", added=("3.14t=/my py/python", "3.14=/usr/bin/python3.14"),
                        sdists=True)
    assert found.request.command() == (f"gilscope evaluate {folder} --builds 3.14t --build '3.14t=/my py/python' "
                                       "--build 3.14=/usr/bin/python3.14 --build-sdists")
    waiting = replace(found.request, wait_quiet=WAIT_QUIET)
    assert waiting.command() == f"{found.request.command()} --wait-quiet"


def test_races_are_looked_for_before_python_is_compiled(steps, folder, monkeypatch):
    seen = []
    monkeypatch.setattr(looking, "check_races", lambda _, run_site, **__: seen.append(run_site) or CLEAN)
    evaluate(steps, folder)
    (folder / "setup.py").write_text("from mypyc.build import mypycify\nsetup(ext_modules=mypycify(['app.py']))\n")
    evaluate(steps, folder)
    before, after = seen
    assert (before.uncompiled, after.uncompiled, after.root, after.folders[0]) == (False, True, None, folder)


SECTION = """
from gilscope.toolkit.evaluate.facts import TableCell, Codes, Effect, Kind
from gilscope.toolkit.evaluate.section import Section
from gilscope.toolkit.evaluate.sections import Place


def measure(found, means):
    return {label: len(found.project.modules) for label in found.labels}


def facts(found):
    for label, modules in found.sections["pickling"].items():
        yield CODES.fact("pickling.fails", label, f"{modules} module cannot be pickled", subject="app",
                         action="make app picklable", places=(Place(file="app.py", line=1),),
                         cells=(TableCell("pickles", "0 of 1"),), unread="modules in C cannot be pickled")


CODES = Codes({
    "pickling.fails": Kind(Effect.UNKNOWN, heading="Pickling"), "pickling.not-looked-at": Kind(Effect.NOT_LOOKED_AT)})
PICKLING = Section(name="pickled objects", code="pickling", codes=CODES, facts=facts, measure=measure,
                   result=dict[str, int])
"""


@pytest.fixture
def pickling(tmp_path_factory, monkeypatch):
    """Return a section that a package outside of gilscope defines."""
    place = tmp_path_factory.mktemp("package")
    (place / "one_more_section.py").write_text(SECTION)
    monkeypatch.syspath_prepend(place)
    return importlib.import_module("one_more_section").PICKLING


def test_section_of_another_package_is_in_verdict_screen_plan_and_json(steps, folder, pickling):
    said = []
    found = Evaluator(EvaluationRequest(path=folder), (FREE,), (FREE, COUNTERPART), said.append,
                      clock=lambda: steps.now, sections=(*SECTIONS, pickling)).run()
    assert announced(said)[-1] == "pickled objects"
    first = found.conclusions[0]
    assert (first.word, first.reasons) == ("INCONCLUSIVE", ("1 module cannot be pickled",))
    assert "3.14t: make app picklable" in found.next_steps
    assert found.answer.effort.places == (Place(file="app.py", line=1),)
    assert found.answer.effort.unknown == "modules in C cannot be pickled"
    shown = terminal.render(document(found), width=120)
    heads, _, row, *_ = shown[shown.index("target"):].splitlines()
    assert (heads.split()[-1], row.split()[-3:]) == ("pickles", ["0", "of", "1"])
    assert "Pickling\n  3.14t: 1 module cannot be pickled" in shown
    (fact,) = (each for each in plain(found)["facts"] if each["code"] == "pickling.fails")
    assert (fact["target"], fact["effect"], fact["places"]) == ("3.14t", "unknown", ["app.py:1"])


def test_section_of_another_package_is_not_measured_twice(again, pickling):
    first, _, _ = again(sections=(*SECTIONS, pickling))
    second, _, said = again(sections=(*SECTIONS, pickling))
    assert second.sections["pickling"] == first.sections["pickling"] == {"3.14t": 1}
    assert announced(said)[-1] == "pickled objects: nothing has changed since it was measured"


def test_section_depends_on_the_options_that_it_names(again, pickling):
    def section_of(said):
        return announced(said)[-1].removeprefix("pickled objects")

    hammering = replace(pickling, options=("hammer",))
    again(sections=(*SECTIONS, hammering), hammer=5.0)
    assert section_of(again(sections=(*SECTIONS, hammering), hammer=5.0)[2]) == (
        ": nothing has changed since it was measured")
    assert section_of(again(sections=(*SECTIONS, hammering), hammer=6.0)[2]) == ""
    again(sections=(*SECTIONS, pickling), hammer=7.0)
    assert section_of(again(sections=(*SECTIONS, pickling), hammer=8.0)[2]) == (
        ": nothing has changed since it was measured")


def test_sections_name_options_that_a_request_has():
    names = {each.name for each in fields(EvaluationRequest)}
    assert {name for section in SECTIONS for name in section.options} <= {*names, "called"}
    (hammer,) = (section for section in SECTIONS if section.code == "hammer")
    assert {*hammer.options} >= {"budget", "hammer", "threads"}


def test_time_that_does_not_count_is_given_back_when_a_wait_fails(steps, folder, pickling):
    def measure(_, means):
        with suppress(OSError), means.uncounted():
            steps.now += 100.0
            raise OSError
        return {"3.14t": round(means.left())}

    found = Evaluator(EvaluationRequest(path=folder, budget=300.0), (FREE,), (FREE, COUNTERPART), lambda _: None,
                      clock=lambda: steps.now, sections=(*SECTIONS, replace(pickling, measure=measure))).run()
    assert found.sections["pickling"] == {"3.14t": 300}


def test_section_that_is_not_measured_says_so(steps, folder, pickling):
    found = Evaluator(EvaluationRequest(path=folder), (FREE,), (FREE, COUNTERPART), lambda _: None,
                      clock=lambda: steps.now, sections=(*SECTIONS, pickling)).explain("thing")
    (fact,) = (each for each in found.facts if each.code.startswith("pickling"))
    assert (fact.code, fact.text) == ("pickling.not-looked-at", "not run for --explain")
