"""The repair that fits an object: what a copy cannot mend gets another one."""

import builtins
import copy

import pytest

from gilscope.toolkit.scale.blamed_object import BlamedObject
from gilscope.toolkit.scale.judgement import Obstacle
from gilscope.toolkit.scale.repairs import TEXTS, UNCOPIED, RepairCode, repairs

VALUES = {"range": range(3), "tuple": (1.5, "a"), "complex": 1j, "bytes": b"ab", "str": "ab", "int": 10**9,
          "float": 1.5}


def blamed(kind, of_type):
    return BlamedObject(name="app.LIMIT", kind=kind, type=of_type)


@pytest.mark.parametrize("of_type", sorted(UNCOPIED))
def test_value_whose_copy_is_the_same_object_is_made_in_each_thread(of_type):
    value = VALUES[of_type]
    assert type(value) is getattr(builtins, of_type)
    assert copy.deepcopy(value) is value
    for kind in ("global", "item", "attribute", "argument", "key", "unknown"):
        assert [*repairs(Obstacle.COUNTS, [blamed(kind, of_type)])] == [RepairCode.THREAD_VALUE]


@pytest.mark.parametrize("of_type", ["list", "dict", "app.Price", "frozenset"])
def test_object_that_can_be_copied_is_copied(of_type):
    one = blamed("global", of_type)
    assert repairs(Obstacle.COUNTS, [one]) == {RepairCode.THREAD_COPY: [one]}


def test_kind_decides_before_type():
    assert [*repairs(Obstacle.COUNTS, [blamed("constant", "float"), blamed("class attribute", "int"),
                                       blamed("item", "str"), blamed("item", "list")])] == [
        RepairCode.BYTECODE, RepairCode.LOCAL_NAME, RepairCode.THREAD_VALUE, RepairCode.THREAD_COPY]


def test_objects_stand_beside_their_repair_and_open_verdicts_have_none():
    table, row, other = blamed("global", "dict"), blamed("item", "float"), blamed("item", "list")
    assert repairs(Obstacle.COUNTS, [table, row, other]) == {
        RepairCode.THREAD_COPY: [table, other], RepairCode.THREAD_VALUE: [row]}
    assert repairs(Obstacle.COLLECTOR, []) == {RepairCode.COLLECTOR: []}
    assert repairs(Obstacle.UNKNOWN, [table]) == {}


def test_each_code_has_its_text():
    assert set(TEXTS) == set(RepairCode)
