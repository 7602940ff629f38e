"""One environment and one library for each build."""

import pytest

from tests.evaluate.places import library
from tests.gil_guard.guarded import Project, make_environment
from tests.shared import once


@pytest.fixture(scope="session")
def environment(build, tmp_path_factory):
    """Return what a project needs: the version, the interpreter and the extension module of a build."""
    folder = once(tmp_path_factory, f"guarded-{build.label}", lambda folder: make_environment(build, folder / "venv"))
    return build.minor, folder / "venv" / "bin" / "python", library(build, tmp_path_factory)


@pytest.fixture
def project(environment, tmp_path):
    """Return a maker of projects."""
    return lambda name="planted", **options: Project(*environment, tmp_path / name, **options)
