"""What an evaluation measured is measured again when something that it depends on has changed, and not otherwise."""

import os
import shutil
from dataclasses import replace
from math import inf

import pytest

from gilscope.toolkit.evaluate import cache as kept_module
from gilscope.toolkit.evaluate.cache import FRESH_SECONDS, EvaluationCache, why_provisional
from gilscope.toolkit.evaluate.project.cost_and_gain import CostsAndGains, OtherModel
from gilscope.toolkit.evaluate.project.extensions.own_extensions import (
    Binding,
    ExtensionModule,
    ExtensionSource,
    OwnBuild,
    OwnExtensions,
    Remark,
)
from gilscope.toolkit.evaluate.project.fingerprint import digest, made_by_the_run, sums
from gilscope.toolkit.evaluate.sections import (
    NO_TIME,
    BuildSpeed,
    Cause,
    Forced,
    Missing,
    Place,
    WorkloadFailure,
)
from gilscope.toolkit.evaluate.shared_sections import SHARED, Tests
from tests.evaluate.made_up import CLEAN, QUIET, evaluation, found, ratio, suite
from tests.fakes import make_build


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "app.py").write_text("ANSWER = 42\n")
    (folder / "data.json").write_text("{}")
    return folder


@pytest.fixture
def build(tmp_path):
    python = tmp_path / "python3.14t"
    python.write_text("")
    return replace(make_build("3.14t"), base_executable=str(python))


@pytest.fixture
def kept(root, build):
    """Return what opens the parts of the project anew, as the next call does."""
    return lambda **options: EvaluationCache(root, options.pop("builds", (build,)), **options)


def test_part_comes_back_as_it_was(kept):
    kept().put("tests", {"3.14t": suite()}, "pytest")
    part = kept().get(Tests, "tests", "pytest")
    assert part.value == {"3.14t": suite()}
    assert part.made > 0


RESULTS = {section.code: section.result for section in SHARED}
OWN = OwnExtensions(
    modules=(ExtensionModule(name="app._fast", binding=Binding.C_API, backend="setuptools", file="setup.py", line=3),),
    sources=(ExtensionSource(file="fast.c", language="C", binding=Binding.C_API, defines=True, line=9, declared=False,
                             declare="a slot", remarks=(Remark(line=2, concern="state", what="static int n"),)),),
    unsure=("?",), limited=(Place(file="setup.py", line=4),), read_for="3.14t")


def steps_of(found):
    """Return the results of the steps that an evaluation is made from; of some builds, everything is missing."""
    reports = dict(found.packages)
    forced = Forced(against="3.14", by="tests", cost=NO_TIME, measured={0: ratio(inf)}, failure="", machine=QUIET)
    speed = {label: replace(each, forced=forced, failure=WorkloadFailure(kind="fails", detail="\udcff"))
             for label, each in found.speed.items()}
    models = {("threads", "3.14"): OtherModel(measured=ratio(1.1), failure=""),
              ("subinterpreters", "3.14"): OtherModel(measured=NO_TIME, failure="crash")}
    return {
        "packages": reports, "interpreters": reports,
        "sources": OWN,
        "extensions": {"3.14t": OwnBuild(build="3.14t", report=reports["3.14t"])},
        "trial": {"a": Missing(reason="crash", cause=Cause.CRASHED), **found.trials},
        "tests": dict(found.tests),
        "races": found.races,
        "speed": CostsAndGains(machine=QUIET, speed=speed, others=models, models_compared=True)}


NOTHING = Missing(reason="no tests")
NO_SPEED = CostsAndGains(machine=NOTHING, speed={"3.14t": BuildSpeed.missing(NOTHING)}, others={},
                         models_compared=False)


@pytest.mark.parametrize(("step", "value"), [
    *steps_of(evaluation()).items(), ("races", NOTHING), ("speed", NO_SPEED)])
def test_result_of_every_step_comes_back_as_it_was(kept, monkeypatch, step, value):
    monkeypatch.setattr(kept_module, "why_provisional", lambda _: "")   # a real one is stored without what is not final
    kept().put(step, value)
    assert kept().get(RESULTS[step], step).value == value


def test_every_step_is_tried():
    assert set(steps_of(evaluation())) == set(RESULTS)


@pytest.mark.parametrize("change", [
    lambda root, _: (root / "app.py").write_text("ANSWER = 41\n"), lambda root, _: (root / "app.py").unlink(),
    lambda root, _: (root / "tests" / "test_new.py").write_text(""),
    lambda root, _: (root / "data.json").write_text("[]"),
    lambda _, python: os.utime(python, (1, 1)),
], ids=["edited", "removed", "new", "data", "build"])
def test_change_makes_it_measure_anew(kept, root, build, change):
    kept().put("tests", 1)
    assert kept().get(int, "tests")
    change(root, build.base_executable)
    assert kept().get(int, "tests") is None


def test_other_options_builds_and_fresh_measure_anew(kept, build):
    kept().put("tests", 1, "pytest")
    assert kept().get(int, "tests", "pytest -x") is None
    assert kept().get(int, "races", "pytest") is None
    assert kept(builds=(build, replace(build, label="3.15t"))).get(int, "tests", "pytest") is None
    assert kept(fresh=True).get(int, "tests", "pytest") is None
    assert kept().get(int, "tests", "pytest").value == 1


def test_other_gilscope_measures_anew(kept, monkeypatch):
    kept().put("tests", 1)
    monkeypatch.setattr(kept_module, "_own_sum", lambda: "another version")
    assert kept().get(int, "tests") is None


@pytest.mark.parametrize(("name", "matters"), [
    ("APP_USE_C", True), ("APP_IN_CMAKE", True), ("CFLAGS", True), ("APP_UNNAMED", False), ("PWD", False)])
def test_variable_that_the_build_asks_for_measures_anew(kept, root, monkeypatch, name, matters):
    (root / "setup.py").write_text("import os\nif os.getenv('APP_USE_C') == '1' and os.environ['PWD']: ...\n")
    (root / "CMakeLists.txt").write_text("if($ENV{APP_IN_CMAKE})\nendif()\n")
    monkeypatch.delenv(name, raising=False)
    kept().put("extensions", 1)
    monkeypatch.setenv(name, "1")
    assert (kept().get(int, "extensions") is None) is matters
    kept().put("extensions", 2)
    monkeypatch.setenv(name, "0")
    assert (kept().get(int, "extensions") is None) is matters
    monkeypatch.delenv(name)
    assert (kept().get(int, "extensions") is None) is matters


def test_cache_in_the_projects_folder_is_no_part_of_it(kept, root, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(root / "cache"))
    kept().put("tests", 1)
    assert kept().get(int, "tests").value == 1


def test_day_is_the_most(kept, monkeypatch):
    kept().put("tests", 1)
    later = kept_module.time.time() + FRESH_SECONDS + 1
    monkeypatch.setattr(kept_module.time, "time", lambda: later)
    assert kept().get(int, "tests") is None


def test_what_tools_and_the_run_itself_write_changes_nothing(kept, root):
    first = kept()
    (root / "report.xml").write_text("1")      # as tests do
    first.put("tests", 1)
    (root / "log.txt").write_text("")          # text is what people write
    (root / "log.txt").unlink()
    for name in ("__pycache__", ".pytest_cache", "app.egg-info"):
        (root / name).mkdir()
        (root / name / "file").write_text("")
    (root / "report.xml").write_text("2")
    assert kept().get(int, "tests").value == 1


def test_part_before_the_one_that_writes_files_stays(kept, root):
    first = kept()
    first.put("packages", 0)
    (root / "data.json").write_text("[1]")   # as tests do to what is there already
    first.put("tests", 1)
    assert [kept().get(int, name).value for name in ("packages", "tests")] == [0, 1]


def test_file_that_people_edit_meanwhile_makes_it_measure_anew(kept, root):
    first = kept()
    (root / "app.py").write_text("ANSWER = 41\n")
    first.put("tests", 1)
    assert kept().get(int, "tests") is None


def test_own_outputs_are_no_part_of_the_project(kept, root):
    first = kept(outputs=[root / "out.json"])
    first.put("tests", 1)
    (root / "out.json").write_text("{}")
    assert kept().get(int, "tests").value == 1


def test_outputs_of_a_call_that_measured_nothing_are_no_part_of_the_project_either(kept, root):
    kept().put("tests", 1)
    assert kept(outputs=[root / "out.json"]).get(int, "tests").value == 1
    (root / "out.json").write_text("{}")
    assert kept().get(int, "tests").value == 1


@pytest.mark.parametrize("content", [b"", b"junk", b"\xff", b'"1"', b"{}", b"[" * 100_000])
def test_damaged_part_is_measured_again(kept, cache, content):
    kept().put("tests", 12345)
    (file,) = (each for each in cache.glob("evaluations/*") if each.read_text() == "12345")
    file.write_bytes(content)
    assert kept().get(int, "tests") is None


def test_pipe_in_its_place_is_not_waited_for(kept, cache):
    kept().put("tests", 1)
    for file in cache.glob("evaluations/*"):
        file.unlink()
        os.mkfifo(file)
    assert kept().get(int, "tests") is None


def test_what_others_can_write_is_not_used_and_said(kept, cache):
    kept().put("tests", 1)
    assert kept().doubt == ""
    (cache / "evaluations").chmod(0o777)
    assert kept().get(int, "tests") is None
    assert kept().doubt.startswith(f"{cache / 'evaluations'} can be written by others")


def test_what_another_user_has_put_there_is_not_used(kept, cache, monkeypatch):
    kept().put("tests", 1)
    other = os.geteuid() + 1
    monkeypatch.setattr(kept_module.os, "geteuid", lambda: other)
    assert kept().get(int, "tests") is None


def test_project_gets_its_own_parts_alone(kept, root, build):
    kept().put("tests", 1)
    copy = root.with_name("copy")
    shutil.copytree(root, copy)
    assert EvaluationCache(copy, (build,)).get(int, "tests") is None


def test_why_a_part_is_measured_again(kept, root):
    kept().put("speed", replace(QUIET, doubts=("busy",)))
    assert kept().get(int, "speed") is None
    assert kept().why_provisional("speed") == "busy"
    assert kept(fresh=True).why_provisional("speed") == ""
    (root / "app.py").write_text("ANSWER = 41\n")
    assert kept().why_provisional("speed") == "", "there is a better reason"


@pytest.mark.parametrize("content", ["", "[]", '{"parts": 1}', '{"parts": {"a": {}}, "ignored": []}'])
def test_damaged_state_is_none(kept, cache, content):
    kept().put("tests", 1)
    (file,) = (each for each in cache.glob("evaluations/*") if "ignored" in each.read_text())
    file.write_text(content)
    assert kept().get(int, "tests") is None


def test_folder_that_cannot_be_written_costs_nothing(kept, cache):
    cache.mkdir()
    (cache / "evaluations").write_text("")
    kept().put("tests", 1)
    assert kept().get(int, "tests") is None


def test_what_nobody_asked_for_in_a_week_goes(kept, cache):
    kept().put("tests", 1)
    for file in cache.glob("evaluations/*"):
        os.utime(file, (1, 1))
    kept()
    assert list(cache.glob("evaluations/*")) == []


@pytest.mark.parametrize(("value", "lasts"), [
    (found(), True), (Missing(reason="no tests"), True), (Missing(reason="no index", cause=Cause.FAILED), False),
    ({"3.14t": NO_TIME}, False), (found(gain=NO_TIME), False),
    ({"3.14t": suite(ending="unfinished: not done within 9 s")}, False), ((replace(QUIET, doubts=("busy",)),), False),
    (replace(CLEAN, lacking=(("workload", NO_TIME),)), False), (CLEAN, True),
    (replace(QUIET, cores=1, doubts=("one core",)), True),
    ({"3.14t": OwnBuild(build="3.14t")}, True), ({"3.14t": OwnBuild(build="3.14t", failure=NO_TIME)}, False)])
def test_only_what_another_call_would_find_again_is_kept(value, lasts):
    assert (not why_provisional(value)) is lasts


def test_digest_depends_on_names_contents_and_order_of_nothing(root):
    first = sums(root)
    assert set(first) == {"app.py", "data.json"}
    assert digest(first) == digest(dict(reversed(first.items())))
    assert digest(first) != digest(first, "more")
    assert digest({"a": "1"}) != digest({"b": "1"})


def test_file_is_read_once_while_it_stays_as_it_is(root):
    known = {}
    first = sums(root, known=known)
    path = root / "app.py"
    status, summed = known[path]
    known[path] = status, "read before"
    assert sums(root, known=known)["app.py"] == "read before"
    path.write_text(path.read_text() + "\n")
    assert sums(root, known=known)["app.py"] not in {"read before", first["app.py"], summed}


def test_large_file_and_link_are_known_without_being_read(root):
    (root / "large.bin").write_bytes(b"\0" * (2**20 + 1))
    (root / "link").symlink_to("nowhere")
    found = sums(root)
    assert found["large.bin"].startswith(f"{2**20 + 1} ")
    assert found["link"] == "-> nowhere"


def test_file_that_is_not_large_is_known_by_what_it_holds_alone(root):
    (root / "data.json").write_text("1" * 5000)
    (root / "old.pyc").write_text("")
    first = sums(root)
    assert set(first) == {"app.py", "data.json"}
    os.utime(root / "data.json", (1, 1))
    assert sums(root) == first


def test_environment_in_the_project_is_not_looked_at(root):
    (root / "env").mkdir()
    (root / "env" / "pyvenv.cfg").write_text("")
    (root / "env" / "thing.py").write_text("")
    assert set(sums(root)) == {"app.py", "data.json"}


def test_made_by_the_run_is_no_source():
    assert made_by_the_run({"a.py": "1", "a.db": "1"}, {"a.py": "2", "a.db": "2", "b.xml": "1", "c.py": "1"}) == {
        "a.db", "b.xml"}


@pytest.mark.parametrize(("name", "matters"), [
    ("runners/threads.py", True), ("toolkit/core.c", True), ("a.pyc", False)])
def test_own_sum_changes_with_every_source(tmp_path, monkeypatch, name, matters):
    monkeypatch.setattr(kept_module, "OWN_FOLDERS", (tmp_path,))
    before = kept_module._own_sum.__wrapped__()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("changed")
    assert (kept_module._own_sum.__wrapped__() != before) is matters
