"""The workflow that `--ci github` writes: what it installs, runs and builds, as YAML that GitHub takes."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.views.github_workflow import workflow
from tests.actionlint import lint
from tests.evaluate.made_up import PROJECT
from tests.fakes import make_build

BUILDS = (make_build("3.14t"), replace(make_build("3.15t"), version="3.15.0rc1"))


def test_runs_the_projects_tests_on_each_build():
    text = workflow(PROJECT, BUILDS, extensions=False)
    assert 'python: ["3.14t", "3.15t"]' in text
    assert "python -m pip install . pytest\n" in text
    assert "          python -m pytest -q\n" in text
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


@pytest.mark.network   # the first time
@pytest.mark.parametrize("extensions", [False, True])
@pytest.mark.parametrize("builds", [BUILDS, (make_build("3.13t"), make_build("3.14t"))], ids=["new", "old"])
def test_workflow_is_clean_for_actionlint(extensions, builds):
    text = workflow(PROJECT, builds, extensions=extensions)
    assert lint(text) == ""
