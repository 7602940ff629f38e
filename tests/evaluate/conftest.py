"""Libraries and environments that many tests share."""

import pytest

from tests.evaluate.places import Site, build_called, compiled


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="session")
def variants(libraries):
    """Return the library of all variants for the build of a label."""
    return lambda label: compiled(build_called(label), libraries)


@pytest.fixture
def site(tmp_path, variants):
    """Make an environment of the build of a label."""
    return lambda label: Site(build_called(label), tmp_path / label, variants(label))
