"""Objects that only C types store are found by their attributes, where the garbage collector does not name them."""

import datetime
import gc
import sys
import textwrap

import pytest

from gilscope.toolkit.scale.child.opaque import readers, stored, stored_values
from gilscope.toolkit.scale.child.reachable import reachable
from gilscope.toolkit.scale.zygote_process import ZygoteProcess
from tests.conformance.builds import run_child

STAMPS = """
    import datetime

    STAMP = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2), "east"))

    def f():
        return STAMP.tzinfo
"""

CRASHING = """
import datetime, os, types
from gilscope.toolkit.scale.child import zygote
zygote.stored_values = lambda each: os.abort()
process = zygote.Zygote(types.SimpleNamespace(end_with_parent=lambda parent: None))
stamp = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2), "east"))
found = process._reachable([stamp])
assert any(each is stamp for each in found)
assert not any(each is stamp.tzinfo for each in found)
"""


def zone():
    return datetime.timezone(datetime.timedelta(hours=2), "east")


def test_stored_object_is_found_and_computed_ones_are_not():
    stamp = datetime.datetime(2026, 1, 1, 12, 30, tzinfo=zone())
    assert not any(each is stamp.tzinfo for each in gc.get_referents(stamp))
    assert ("tzinfo", stamp.tzinfo) in list(stored(stamp))
    assert "days" not in dict(stored(datetime.timedelta(days=400_000)))      # a new number at each read


def test_objects_that_the_collector_or_the_interpreter_knows_are_not_read():
    class Unhashable(type):
        __hash__ = None

    class Noisy(metaclass=Unhashable):
        @property
        def loud(self):
            raise AssertionError

    for each in (Noisy(), 1.5, "text", b"bytes", [1], readers):
        assert readers(type(each)) == {}


def test_attributes_are_read_past_python_code_of_a_subclass():
    class Stamp(datetime.datetime):
        @property
        def tzinfo(self):
            raise AssertionError

        def __getattribute__(self, name):
            raise AssertionError

    east = zone()
    stamp = Stamp(2026, 1, 1, tzinfo=east)
    assert dict(stored(stamp))["tzinfo"] is east


def test_walk_goes_through_what_is_stored():
    stamp = datetime.datetime(2026, 1, 1, tzinfo=zone())
    assert not any(each is stamp.tzinfo for each in reachable([stamp], []))
    assert any(each is stamp.tzinfo for each in reachable([stamp], [], stored_values))


def test_attribute_that_crashes_costs_what_is_stored_and_not_the_process():
    done = run_child(sys.executable, "-c", CRASHING)
    assert done.returncode == 0, done.stderr


@pytest.mark.builds("free")
def test_object_behind_one_that_is_not_tracked_has_a_name(python, tmp_path):
    (tmp_path / "stamps.py").write_text(textwrap.dedent(STAMPS))
    with ZygoteProcess(python, [tmp_path]) as process:
        loaded = process.load("stamps:f", None, None, 2)
        names = {each.name for each in process.names(range(loaded.objects))}
    assert "stamps.STAMP.tzinfo" in names
