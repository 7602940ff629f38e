"""The workflow that `--ci github` writes: what it installs, runs and builds, as YAML that GitHub takes."""

import subprocess
from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.views.github_workflow import InstalledModules, workflow
from tests.actionlint import lint
from tests.evaluate.made_up import PROJECT
from tests.evaluate.places import COMPILER
from tests.evaluate.project.extensions.made import project
from tests.fakes import make_build

BUILDS = (make_build("3.14t"), replace(make_build("3.15t"), version="3.15.0rc1"))


def test_runs_the_projects_tests_on_each_build():
    text = workflow(PROJECT, BUILDS, extensions=False)
    assert 'python: ["3.14t", "3.15t"]' in text
    assert "python -m pip install . pytest\n" in text
    assert "          python -P -m pytest -q\n" in text
    assert "sys._is_gil_enabled()" in text
    assert "cibuildwheel" not in text


def test_wheels_where_there_are_extensions():
    text = workflow(PROJECT, BUILDS, extensions=True)
    assert 'CIBW_BUILD: "cp314t-* cp315t-*"' in text
    assert "CIBW_ENABLE: cpython-prerelease" in text
    assert "CIBW_ENABLE" not in workflow(PROJECT, BUILDS[:1], extensions=True)
    assert "CIBW_ENABLE: cpython-freethreading" in workflow(PROJECT, (make_build("3.13t"),), extensions=True)


def test_what_cannot_be_installed_gets_its_requirements():
    script = replace(PROJECT, installable=False, modules=(), tests=("tox", "-e", "py"))
    text = workflow(script, BUILDS, extensions=False)
    assert "python -m pip install lxml protobuf orjson pytest\n" in text
    assert "tox -e py" in text
    assert "_is_gil_enabled" not in text
    bare = replace(PROJECT, installable=False, requirements=(), test_requirements=(), tests=None)
    assert "pip install" not in workflow(bare, BUILDS, extensions=False)


def test_words_of_the_projects_are_quoted():
    odd = replace(PROJECT, test_requirements=("pytest>=8; python_version > '3.9'",))
    assert """'pytest>=8; python_version > '"'"'3.9'"'"''""" in workflow(odd, BUILDS, extensions=False)


@pytest.mark.slow
@pytest.mark.network   # the first time
@pytest.mark.parametrize("extensions", [False, True])
@pytest.mark.parametrize("builds", [BUILDS, (make_build("3.13t"), make_build("3.14t"))], ids=["new", "old"])
def test_workflow_is_clean_for_actionlint(extensions, builds):
    text = workflow(PROJECT, builds, extensions=extensions)
    assert lint(text) == ""


TESTS = """import sys, unittest, pkg

class It(unittest.TestCase):
    def test_it(self): self.assertNotIn("checkout", pkg.__file__)
"""
OPTIONAL = "try:\n    from pkg import _c\nexcept ImportError:\n    _c = None\n"


def steps(text):
    """Yield the commands of the job `tests`, with the folder of each."""
    job = text.split("\n  wheels:")[0]
    for step in job.split("\n      - ")[1:]:
        if "run: |\n" in step:
            outside = "working-directory: ${{ runner.temp }}/outside" in step
            lines = step.partition("run: |\n")[2].partition("        working-directory:")[0].splitlines()
            yield "\n".join(line.removeprefix("          ") for line in lines), outside


def run_as_runner(text, made, python, folder):
    """Run the steps as a runner does: bash -e, a folder for temporary files; return the status and all output."""
    subprocess.run([python, "-m", "venv", folder / "environment"], check=True)
    outside = folder / "temporary"
    outside.mkdir()
    env = {"PATH": f"{folder / 'environment' / 'bin'}:/usr/bin:/bin", "RUNNER_TEMP": str(outside), "PIP_NO_INDEX": "1",
           "HOME": str(folder)}
    said = ""
    for command, elsewhere in steps(text):
        place = outside / "outside" if elsewhere else made.root
        done = subprocess.run(["bash", "-e", "-c", command], cwd=place, env=env, capture_output=True, text=True,
                              check=False)
        said += done.stdout + done.stderr
        if done.returncode:
            return done.returncode, said
    return 0, said


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize(("changes", "ends"), [
    ({"declared": True}, ""),
    ({"declared": False}, "the GIL is on"),
    ({"source": "#error no", "optional": True}, "not compiled: ['pkg._c']"),
], ids=["declared", "turns it on", "not compiled"])
@pytest.mark.parametrize("layout", ["", "src"])
def test_steps_fail_where_the_installed_package_is_not_as_it_has_to_be(pair, tmp_path, changes, ends, layout):
    made = project(tmp_path / "checkout", tests=TESTS, init=OPTIONAL, layout=layout, **changes)
    if "error" in changes.get("source", ""):   # in the checkout lies what an earlier build left there
        (made.root / layout / "pkg" / "_c.py").write_text("")
    (made.root / "tests" / "__init__.py").write_text("")
    made = replace(made, tests=("python", "-m", "unittest", "discover", "-s", "tests", "-t", "."))
    text = workflow(made, pair[:1], extensions=True,
                    installed=InstalledModules(top_level=("pkg",), compiled=("pkg._c",)))
    status, said = run_as_runner(text, made, pair[0].executable, tmp_path)
    assert (status != 0, ends in said) == (bool(ends), True), said


def test_sources_that_are_not_copied_are_the_projects(tmp_path):
    made = project(tmp_path / "checkout")
    assert "rm -rf -- backend.py pkg\n" in workflow(made, BUILDS, extensions=False)
    made = project(tmp_path / "src", layout="src")
    assert "rm -rf -- src/pkg\n" in workflow(made, BUILDS, extensions=False)


def test_tests_inside_of_the_package_run_where_it_is_installed(tmp_path):
    made = project(tmp_path / "checkout", tests=None)
    (made.root / "pkg" / "tests").mkdir()
    (made.root / "pkg" / "tests" / "test_it.py").write_text("")
    text = workflow(find_project(made.root), BUILDS, extensions=False)
    assert "          python -P -m pytest -q --pyargs pkg\n" in text
    assert "python -P -c 'import sys, pkg; sys.exit(" in text   # setup.py and backend.py are not installed
