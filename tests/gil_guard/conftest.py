"""One environment and one library for each build."""

import pytest

from tests.evaluate.places import build_called, compiled, one_of_each
from tests.gil_guard.guarded import Project, make_environment


def pytest_generate_tests(metafunc):
    """Run each test on the free-threaded builds at hand, or on those with a GIL."""
    for name, free_threaded in (("free_build", True), ("gil_build", False)):
        if name in metafunc.fixturenames:
            labels = one_of_each(free_threaded=(free_threaded,))
            none = pytest.param("", marks=pytest.mark.skip(reason="no such build at hand"))
            metafunc.parametrize(name, labels or [none])


@pytest.fixture(scope="session")
def pythons(tmp_path_factory):
    """Return a function that makes the environment and the library of a build, once."""
    made = {}

    def make(label):
        if label not in made:
            build = build_called(label)
            library = compiled(build, tmp_path_factory.mktemp("library"))
            python = make_environment(build, tmp_path_factory.mktemp("environment") / label)
            made[label] = build.minor, python, library
        return made[label]

    return make


@pytest.fixture
def project(pythons, free_build, tmp_path):
    """Return a maker of projects on a free-threaded build."""
    return lambda name="planted", **options: Project(*pythons(free_build), tmp_path / name, **options)


@pytest.fixture
def project_with_gil(pythons, gil_build, tmp_path):
    """Return a maker of projects on a build with a GIL."""
    return lambda name="planted", **options: Project(*pythons(gil_build), tmp_path / name, **options)
