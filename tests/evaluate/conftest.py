"""Libraries and environments that many tests share."""

import pytest

from gilscope.toolkit.evaluate.packages.doctor import reference_of
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
    """Return a build without a GIL and its twin, the newest at hand."""
    pairs = [(build, twin) for build in map(build_called, one_of_each(free_threaded=(True,)))
             if (twin := reference_of(build, at_hand()))]
    if not pairs:
        pytest.skip("no free-threaded build with its twin")
    return max(pairs, key=lambda pair: pair[0].version)


@pytest.fixture
def site(tmp_path, variants):
    """Make an environment of the build of a label."""
    return lambda label: Site(build_called(label), tmp_path / label, variants(label))
