"""Builds with dask.distributed in an environment of their own, as `gilscope run --models dask` has them."""

import functools

import pytest

from gilscope.runners.catalog import PACKAGES
from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.measure.preparation import needed_packages
from tests.evaluate.places import build_called, one_of_each, version


def newest(*, free_threaded):
    """Return the label of the newest release of a kind, in a list; [] where there is none."""
    released = [label for label in one_of_each(free_threaded=(free_threaded,)) if not label.startswith("3.15")]
    return sorted(released, key=lambda label: version(build_called(label)))[-1:]


# The threads of one process need a build without a GIL.
WITH_DASK = [("dask", label) for label in newest(free_threaded=False)] + [
    (name, label) for label in newest(free_threaded=True) for name in PACKAGES]


@functools.cache
def dask_python(label):
    """Return the interpreter of a build that has dask; skip where it cannot be installed."""
    build = build_called(label)
    (wanted,) = set(PACKAGES.values())
    try:
        made = build_environment(build, needed_packages(build), [wanted], purpose="engines")
    except BuildError as error:
        pytest.skip(str(error))
    if reason := made.missing.get(wanted):
        pytest.skip(f"{wanted} cannot be installed: {reason}")
    return str(made.python)
