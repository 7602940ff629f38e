"""The built modules are what the tests and the workload import, wherever the sources lie."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.project.extensions.staging import stage
from gilscope.toolkit.evaluate.project.suite.running import run_tests
from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths, RunSite
from tests.evaluate.project.extensions.made import project

BENCH = RunSite(build="host", python=Path(sys.executable), folders=())
SEES = """
import pkg

def test_built(): assert pkg._c.BUILT

def test_beside(): from tests import helper
"""


def staged(made, tmp_path):
    """Return where the project is run when a module in Python stands for what was compiled."""
    target, root = tmp_path / "target", tmp_path / "tree"
    (target / "pkg").mkdir(parents=True)
    (target / "pkg" / "__init__.py").write_text("from pkg import _c\n")
    (target / "pkg" / "_c.py").write_text("BUILT = True\n")
    (target / "made-1.0.dist-info").mkdir()
    assert stage(made, target, root) is None
    return replace(BENCH, folders=(target,), root=root)


@pytest.mark.parametrize(("layout", "runner"), [
    ("", "python -m pytest -q"), *(pytest.param(layout, runner, marks=pytest.mark.slow) for layout, runner in (
        ("src", "python -m pytest -q"), ("", "python -m unittest -q tests.test_it"),
        ("src", "python -m unittest -q tests.test_it")))])
def test_source_folder_does_not_shadow_the_built_copy(tmp_path, layout, runner):
    tests = SEES if "pytest" in runner else SEES + (
        "\nimport unittest\nclass It(unittest.TestCase):\n    def test_built(self): test_built()\n")
    made = replace(project(tmp_path / "project", layout=layout, tests=tests), tests=tuple(runner.split()))
    (made.root / "tests" / "__init__.py").write_text("")
    (made.root / "tests" / "helper.py").write_text("")
    run_site = staged(made, tmp_path)
    found = run_tests(run_site.placed(made), run_site, limit=600.0)
    assert (str(found.ending), found.failed) == ("0", 0), found.output
    assert not list(made.root.rglob("_c.py"))   # the user's files are as they were


@pytest.mark.slow
def test_without_the_copy_it_would(tmp_path):
    """The counterpart of the test above: what is kept from happening does happen."""
    made = project(tmp_path / "project", tests=SEES)
    run_site = replace(staged(made, tmp_path), root=None)
    assert run_tests(made, run_site, limit=600.0).failed


def test_files_of_the_copy_have_the_projects_names(tmp_path):
    made = project(tmp_path / "project", layout="src")
    run_site = staged(made, tmp_path)
    shown = ProjectPaths(made, run_site)
    assert shown.path(str(run_site.root / "src/pkg/__init__.py")) == "src/pkg/__init__.py"
    assert shown.path(str(run_site.folders[0] / "pkg/__init__.py")) == "src/pkg/__init__.py"
    assert shown.path("/usr/lib/python3/json/__init__.py") is None
    assert run_site.placed(made).sources == (run_site.root / "src",)


def test_folder_of_the_same_name_that_is_no_package_is_left_alone(tmp_path):
    made = project(tmp_path / "project", layout="src")
    (made.root / "pkg").mkdir()
    (made.root / "pkg" / "notes.txt").write_text("no package")
    run_site = staged(made, tmp_path)
    assert [path.name for path in (run_site.root / "pkg").iterdir()] == ["notes.txt"]
    assert (run_site.root / "src/pkg/_c.py").is_file()


def test_copy_that_cannot_be_made_says_why(tmp_path):
    made = project(tmp_path / "project")
    (tmp_path / "tree").write_text("in the way")
    assert "tree" in stage(made, tmp_path / "none", tmp_path / "tree")
