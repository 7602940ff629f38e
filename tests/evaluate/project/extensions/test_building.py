"""The project's own extension modules as its users get them: built, read and imported on each build."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.builds.environment import python_of
from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.installing import fill
from gilscope.toolkit.evaluate.project.extensions import building
from gilscope.toolkit.evaluate.project.extensions.building import InstalledProject, own_builds
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.own_extensions import (
    Binding,
    ExtensionModule,
    OwnExtensions,
    UnbuiltModule,
)
from gilscope.toolkit.evaluate.project.installing import Installation, install_project
from tests.evaluate.made_up import CLEAN, QUIET, conclude, found
from tests.evaluate.places import COMPILER
from tests.evaluate.project.extensions.made import SLOT, SOURCE, project

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


def built(made, builds, folder):
    """Build the project on each build, the first one without a GIL, and return what came of it there."""
    places = {}
    for build in builds:
        environment, target = folder / f"{build.label}-env", folder / f"{build.label}-target"
        assert fill(environment, build, [], None, sdists=False) == {}
        places[build.label] = InstalledProject(build=build, python=python_of(environment), target=target,
                                               installation=install_project(made, environment, target))
    own = find_extensions(made.root)
    return own, own_builds(own, places, {builds[0].label: builds[-1].label} if len(builds) > 1 else {})


def verdict(own):
    return conclude(replace(found(), own=own), QUIET, CLEAN)


def test_optional_module_that_declares_nothing_turns_the_gil_on(pair, tmp_path):
    made = project(tmp_path / "project", optional=True)
    (build, _) = pair
    own, builds = built(made, [build], tmp_path)
    here = builds[build.label]
    assert [each.name for each in own.modules] == ["pkg._c"]
    assert here.finding.verdict.status is Status.GIL
    (extension,) = here.finding.seen.extensions
    assert (extension.name, extension.gil, extension.init) == ("pkg._c", "used", "multi-phase")
    said = verdict(here)
    assert said.word is Verdict.BLOCKED
    assert said.reasons[0].startswith("its own extension module pkg._c turns the GIL on when imported")
    assert sorted(path.name for path in made.root.iterdir()) == [
        "backend.py", "pkg", "pyproject.toml", "setup.py", "tests"]   # nothing was left there


@pytest.mark.slow
def test_module_that_declares_it_is_ready(pair, tmp_path):
    made = project(tmp_path / "project", declared=True, optional=True)
    _, builds = built(made, pair, tmp_path)
    here, there = (builds[build.label] for build in pair)
    assert here.finding.verdict.status is Status.READY
    assert verdict(here).word is Verdict.READY
    assert "1 extension file does without the GIL" in verdict(here).reasons[0]
    assert there.finding.interpreters is InterpreterStatus.LOST   # no Py_mod_multiple_interpreters


@pytest.mark.slow
@pytest.mark.parametrize(("optional", "where", "word"), [
    (True, "everywhere", Verdict.INCONCLUSIVE), (False, "everywhere", Verdict.INCONCLUSIVE),
    (True, "without the GIL", Verdict.WITH_COST), (False, "without the GIL", Verdict.BLOCKED)])
def test_not_built_is_not_ready(pair, tmp_path, optional, where, word):
    broken = "#include <Python.h>\n#if defined(Py_GIL_DISABLED) || ALWAYS\n#error no threads here\n#endif\n"
    source = broken.replace("ALWAYS", str(int(where == "everywhere"))) + SOURCE.replace("SLOT", SLOT)
    made = project(tmp_path / "project", source=source, optional=optional)
    _, builds = built(made, pair, tmp_path)
    said = verdict(builds[pair[0].label])
    assert said.word is word
    assert "no threads here" in said.reasons[0]   # the compiler's own words
    assert "no threads here" in builds[pair[0].label].output


@pytest.mark.slow
def test_module_that_its_script_did_not_ask_for_is_missed_with_the_question(pair, tmp_path):
    made = project(tmp_path / "project", declared=True)
    text = (made.root / "setup.py").read_text()
    (made.root / "setup.py").write_text(text + "if os.getenv('FAST'):\n    Extension('pkg._fast', [])\n")
    _, builds = built(made, pair[:1], tmp_path)
    assert [(each.name, each.why) for each in builds[pair[0].label].unbuilt] == [
        ("pkg._fast", "it is made only if os.getenv('FAST') (setup.py:4)")]
    assert verdict(builds[pair[0].label]).word is Verdict.INCONCLUSIVE


def test_project_without_extension_modules_has_none(tmp_path, pair):
    assert own_builds(find_extensions(tmp_path), {}, {}) == {}


def test_project_that_has_only_a_hook_is_looked_at_when_built(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[build-system]\nbuild-backend = 'hatchling.build'\n[tool.hatch.build.hooks.custom]\n")
    (tmp_path / "hatch_build.py").write_text("import subprocess\n")
    assert find_extensions(tmp_path).any


def test_files_of_earlier_builds_are_not_installed(tmp_path, monkeypatch):
    made = project(tmp_path / "project")
    for name in ("pkg/_c.cpython-314t-x86_64-linux-gnu.so", "build/lib.linux/pkg/x.py", "build/kept.txt", "data.so"):
        path = made.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (made.root / ".git").mkdir()
    copied = []

    def run(command, *_, **__):
        copy = Path(command[-1])
        copied.extend(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file())
        copied.append(str((copy / ".git").resolve()))
        return "not today"

    monkeypatch.setattr("gilscope.toolkit.evaluate.project.installing.run_to_end", run)
    assert install_project(made, tmp_path, tmp_path / "t").failure.reason == "not today"
    assert {"build/kept.txt", "data.so", str(made.root / ".git")} <= set(copied)
    assert not [name for name in copied if "cpython" in name or "build/lib" in name]


def test_project_that_cannot_be_copied_says_so(tmp_path):
    made = project(tmp_path / "project")
    shutil.rmtree(made.root)
    assert install_project(made, tmp_path, tmp_path / "t").failure.reason.startswith("cannot copy it: ")


@pytest.mark.parametrize(("output", "question", "elsewhere", "named"), [
    ("error: no abi3 here", "", "3.14", True), ("error: no", "limited_api", "3.14", True),
    ("error: no", "FAST", "3.14", False), ("error: no abi3 here", "limited_api", "", False)])
def test_limited_api_is_what_lacks_where_the_build_or_its_condition_names_it(output, question, elsewhere, named):
    module = ExtensionModule(name="app._c", binding=Binding.C_API, backend="setuptools", file="abi3/setup.py", line=27,
                             question=question)
    assert building._lacks_limited_api(OwnExtensions(modules=(module,)), Installation(output=output, log=output), (
        UnbuiltModule(name="app._c", why="error: no", elsewhere=elsewhere),)) is named


def test_question_of_what_was_not_built_names_the_variables_behind_it():
    asked = ExtensionModule(name="", binding=Binding.MYPYC, backend="setuptools", file="setup.py", line=27,
                            question="FAST", variables=("APP_FAST",))
    said = "it is made only if FAST (setup.py:27), which depends on APP_FAST in the environment"
    assert building._condition(OwnExtensions(modules=(asked,)), "the module made by setup.py:27") == said
    assert building._condition(OwnExtensions(modules=(replace(asked, name="app._c"),)), "app._c") == said
    assert building._condition(OwnExtensions(modules=(replace(asked, question="'APP_FAST' in environ"),)),
                               asked.stand_in) == (
        "it is made only if 'APP_FAST' in environ (setup.py:27)")
    assert building._condition(OwnExtensions(modules=(asked,)), "other") == ""
