"""Builds with dask.distributed in an environment of their own, as `gilscope run --models dask` has them."""

import functools
import re

import pytest

from gilscope.runners.catalog import PACKAGES
from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.measure.preparation import needed_packages
from tests.conformance.builds import found


def newest(*, free_threaded):
    """Return the newest release of a kind, of which dask has wheels soon; skip the test where there is none."""
    released = [build for build in found()
                if build.free_threaded == free_threaded and not re.search("[a-z+]", build.version)]
    if not released:
        pytest.skip(f"no {'free-threaded build' if free_threaded else 'build with the GIL'} at hand")
    return max(released, key=lambda build: version_key(build.version))


@functools.cache
def dask_python(build):
    """Return the interpreter of a build that has dask; skip where it cannot be installed."""
    (wanted,) = set(PACKAGES.values())
    try:
        made = build_environment(build, needed_packages(build), [wanted], purpose="engines")
    except BuildError as error:
        pytest.skip(str(error))
    if reason := made.missing.get(wanted):
        pytest.skip(f"{wanted} cannot be installed: {reason}")
    return str(made.python)
