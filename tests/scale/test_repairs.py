"""The repair that fits an object: what a copy cannot mend gets another one."""

import copy
import functools
import logging
import random
import re
import threading

import pytest

from gilscope.toolkit.scale.blamed_object import BlamedObject
from gilscope.toolkit.scale.judgement import Obstacle
from gilscope.toolkit.scale.repairs import OF_LOCK, TEXTS, UNCOPIED, RepairCode, advice, repairs

VALUES = {"range": range(3), "tuple": (1.5, "a"), "complex": 1j, "bytes": b"ab", "str": "ab", "int": 10**9,
          "float": 1.5, "re.Pattern": re.compile("a+")}


def blamed(kind, of_type):
    return BlamedObject(name="app.LIMIT", kind=kind, type=of_type)


@pytest.mark.parametrize("of_type", sorted(UNCOPIED))
def test_value_whose_copy_is_the_same_object_is_made_in_each_thread(of_type):
    value = VALUES[of_type]
    kind_of_value = type(value)
    assert of_type in {kind_of_value.__name__, f"{kind_of_value.__module__}.{kind_of_value.__name__}"}
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


def text_for(kind, of_type, name="app.LIMIT"):
    one = BlamedObject(name=name, kind=kind, type=of_type)
    (each,) = advice(Obstacle.LOCK if kind in {"lock", "log handler"} else Obstacle.COUNTS, [one])
    assert each.objects == (name,)
    return each.text


@pytest.mark.parametrize(("kind", "of_type"), [("class attribute", "app.State"), ("item", "float")])
def test_local_name_is_advised_with_what_counts_again(kind, of_type):
    text = text_for(kind, of_type)
    assert "only read it there" in text
    for again in ("passing it on", "storing it", "second name", "nested function or generator"):
        assert again in text


def test_pattern_needs_more_than_to_be_compiled_again():
    text = text_for("global", "re.Pattern")
    assert "(?#{threading.get_ident()})" in text
    assert "local name" not in text
    assert re.compile("a(b+)c") is re.compile("a(b+)c")
    assert re.compile("a(b+)c(?#1)") is not re.compile("a(b+)c(?#2)")


def test_logger_is_asked_less_often_as_there_is_one_of_a_name():
    assert "isEnabledFor" in text_for("global", "logging.Logger")
    assert [*repairs(Obstacle.COUNTS, [blamed("global", "logging.Logger")])] == [RepairCode.LOCAL_NAME]
    assert copy.deepcopy(logging.getLogger("app")) is logging.getLogger("app")


def test_dictionary_that_is_only_read_is_looked_up_by_its_own_keys():
    assert "sys.intern" in text_for("lock", "dict")


def test_argument_is_a_local_name_already():
    assert "local name" not in text_for("argument", "float", "argument rate")


@pytest.mark.parametrize(("kind", "of_type", "word"), [
    ("lock", "_thread.lock", "Hold it for less"), ("lock", "random.Random", "random.Random()"),
    ("lock", "functools._lru_cache_wrapper", "cache"), ("lock", "_io.TextIOWrapper", "Write less often"),
    ("log handler", "_thread.RLock", "QueueHandler"), ("lock", "list", "merge them"),
])
def test_lock_is_mended_by_what_has_it(kind, of_type, word):
    assert word in text_for(kind, of_type)


def test_types_of_locks_are_those_that_python_has():
    own = {"_thread.lock", "_thread.RLock", "random.Random", "functools._lru_cache_wrapper"}
    made = (threading.Lock(), threading.RLock(), random.Random(), functools.lru_cache(abs))
    assert {f"{type(each).__module__}.{type(each).__qualname__}" for each in made} == own
    assert own < set(OF_LOCK)


def test_objects_of_one_repair_that_need_other_words_stand_apart():
    lock, numbers = blamed("lock", "_thread.lock"), blamed("lock", "list")
    first, second = advice(Obstacle.LOCK, [lock, numbers])
    assert first.code is second.code is RepairCode.SHARD
    assert (first.objects, second.objects) == ((lock.name,), (numbers.name,))
