"""`functools.cached_property`, which two threads may run at once."""

import functools
import threading

import pytest

from gilscope.toolkit.race.site import SiteInfo, register_sites
from tests.race.sync.layer import Box, installed, native_core
from tests.race.sync.test_primitives import in_turn

register_sites([SiteInfo(__file__, 1, 0, 1, 1, "f", "attr_read", "x", "x", 0, (), None)])     # a file of the program


@pytest.mark.parametrize(("value", "conflicts"), [(Box, True), (lambda: 5, False), (dict, False)])
def test_two_threads_that_run_it_conflict_if_the_value_has_an_identity(value, conflicts):
    probe, both, told = native_core(), threading.Barrier(2), []

    class Source:
        @functools.cached_property
        def handle(self):
            both.wait()
            return value()

    with installed(probe):
        probe.core.start(lambda conflict: told.append(conflict[3]))
        source = Source()
        in_turn_at_once(lambda: source.handle, lambda: source.handle)
    assert ("handle" in told) is conflicts


def in_turn_at_once(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_whoever_finds_the_value_conflicts_with_nobody():
    probe, told = native_core(), []

    class Source:
        @functools.cached_property
        def handle(self):
            return Box()

    with installed(probe):
        probe.core.start(lambda conflict: told.append(conflict[3]))
        source = Source()
        in_turn(lambda: source.handle, lambda: source.handle)
    assert "handle" not in told
