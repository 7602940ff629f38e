"""Libraries and environments that many tests share."""

import math

import pytest

from gilscope.toolkit.evaluate.project.suite import cost as suite_cost
from tests.evaluate.places import Site, library, newest_pair


@pytest.fixture(scope="session")
def variants(tmp_path_factory):
    """Return a function that returns the library of all variants for a build."""
    return lambda build: library(build, tmp_path_factory)


@pytest.fixture(scope="session")
def pair():
    """Return the newest free-threaded build that tests run on, and its counterpart."""
    return newest_pair()


@pytest.fixture
def site(tmp_path, variants):
    """Return a function that makes an environment of a build."""
    return lambda build: Site(build, tmp_path / build.label, variants(build))


@pytest.fixture(scope="session")
def environments(tmp_path_factory):
    """Return a cache folder that whole evaluations share: most need the same empty environments."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def without_registry(environments, monkeypatch):
    """Let evaluations ask no registry, and take no test suite for long enough to tell a cost: starting it may be."""
    monkeypatch.setenv("GILSCOPE_CACHE", str(environments))
    monkeypatch.setattr(suite_cost, "LEAST_CPU", math.inf)
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
