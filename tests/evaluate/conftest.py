"""Libraries and environments that many tests share."""

import math

import pytest

from gilscope.toolkit.evaluate.packages.doctor import reference_of
from gilscope.toolkit.evaluate.project.suite import cost as suite_cost
from tests.evaluate.places import Site, at_hand, build_called, compiled, one_of_each


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="session")
def variants(libraries):
    """Return the library of all variants for the build of a label."""
    return lambda label: compiled(build_called(label), libraries)


@pytest.fixture(scope="session")
def pair():
    """Return a build without a GIL and its counterpart, the newest at hand."""
    pairs = [(build, counterpart) for build in map(build_called, one_of_each(free_threaded=(True,)))
             if (counterpart := reference_of(build, at_hand()))]
    if not pairs:
        pytest.skip("no free-threaded build with its counterpart")
    return max(pairs, key=lambda pair: pair[0].version)


@pytest.fixture
def site(tmp_path, variants):
    """Make an environment of the build of a label."""
    return lambda label: Site(build_called(label), tmp_path / label, variants(label))


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
