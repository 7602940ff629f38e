"""What a build can do is asked of the build itself, whatever its answer is."""

import sys

import pytest

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.measure import abilities as probe
from gilscope.toolkit.measure.preparation import child_environment
from tests.measure.children import USERCODE

NAMES = [runner.name for runner in RUNNERS]


def ask(python, *modules, free=False, **options):
    return probe.ask_build(python, child_environment([USERCODE]), free_threaded=free, modules=modules, **options)


@pytest.mark.builds("gil", "free")
def test_every_runner_is_answered_for(build, python):
    free = build.free_threaded
    found = ask(python, "json", free=free)
    assert list(found.runners) == NAMES
    assert found.runners["serial"] is None
    assert found.runners["threads"] is None   # on a free-threaded build it is asked with the GIL on
    assert (found.runners["free-threaded"] is None) == free
    assert found.modules == {"json": None}
    assert found.isolated == {"json": None}


def test_module_that_is_not_there_or_breaks_has_its_reason():
    found = ask(sys.executable, "broken", "incomplete", "nowhere")
    assert found.modules == {
        "broken": "ZeroDivisionError: while importing",
        "incomplete": "ModuleNotFoundError: No module named 'not_installed_anywhere'",
        "nowhere": "ModuleNotFoundError: No module named 'nowhere'",
    }
    assert found.isolated == found.modules


def test_interpreters_are_asked_only_for_what_they_will_import():
    found = ask(sys.executable, "json", "broken", isolated={"json"})
    assert found.modules == {"json": None, "broken": "ZeroDivisionError: while importing"}
    assert found.isolated == {"json": None}


@pytest.mark.parametrize(("code", "reason"), [
    ("import os\nos.abort()", "importing trouble crashes with SIGABRT"),
    ("import os\nos._exit(3)", "no answer"),
    ("raise SystemExit(3)", "SystemExit: 3"),
    ("print('hello')", None),
    ("print('hello', end='')", None),
    ("import atexit\natexit.register(print, 'bye')", None),
])
def test_module_that_ends_the_process_is_an_answer(code, reason, tmp_path):
    (tmp_path / "trouble.py").write_text(code)
    found = probe.ask_build(sys.executable, child_environment([tmp_path]), free_threaded=False, modules=["trouble"])
    assert found.modules == {"trouble": reason}


def test_module_that_hangs_is_an_answer(tmp_path, monkeypatch):
    (tmp_path / "trouble.py").write_text("import threading\nthreading.Event().wait()")
    monkeypatch.setattr(probe, "LIMIT_SECONDS", 3.0)
    found = probe.ask_build(sys.executable, child_environment([tmp_path]), free_threaded=False, modules=["trouble"])
    assert found.modules == {"trouble": "finding out if trouble works took longer than 3 s"}


def test_python_that_cannot_be_started_can_run_nothing(tmp_path):
    found = ask(str(tmp_path / "python"), "json")
    assert set(found.runners) == set(NAMES)
    assert all(reason.startswith("cannot start ") for reason in found.runners.values())


def test_package_of_two_versions_is_named_with_both():
    def build(**versions):
        return probe.Abilities(runners={}, modules={}, isolated={}, versions=versions)

    abilities = {"3.13": build(numpy="2.5", urllib3="2.6"), "3.13t": build(numpy="2.4", urllib3="2.6")}
    (sentence,) = probe.version_mismatches(abilities)
    assert sentence == "numpy is 2.5 in 3.13, 2.4 in 3.13t: its cells compare these versions too"
