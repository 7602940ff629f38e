"""The rewriter, the C core and the reference model know the same ops and the same methods, with the same effects."""

import re
from pathlib import Path

from gilscope.toolkit.race._core import build
from gilscope.toolkit.race.analysis.known_names import LOCK_METHODS
from gilscope.toolkit.race.site import OPS
from gilscope.toolkit.race.terms import CONTAINER_METHODS, MethodEffect, methods_with
from tests.race.model import foreign_locks, ops_methods

SOURCES = Path(build.__file__).parent
CHANGING = {"GROW", "SHRINK", "RESHAPE"}


def rows():
    """Return, by name, the fields of the table in ops/methods.c: functions and kinds of access."""
    source = (SOURCES / "ops" / "methods.c").read_text()
    table = source.partition("static const Method methods[] = {")[2].partition("};")[0]
    return {name: set(fields.replace(" ", "").split(","))
            for name, fields in re.findall(r'\{"(\w+)", ([^}]*)\}', table)}


def test_c_core_knows_the_same_methods():
    assert set(rows()) == CONTAINER_METHODS


def test_c_core_knows_the_same_changes():
    acts = {name: {field for field in fields if field.startswith("act_")} for name, fields in rows().items()}
    changes = {name for name, fields in rows().items() if fields & CHANGING or acts[name] - {"act_get"}}
    assert changes - {"get"} == methods_with(MethodEffect.CHANGES)
    sizes = {name for name, fields in rows().items() if fields & {"SIZE", "SNAPSHOT"}}
    assert sizes == methods_with(MethodEffect.READS_SIZE)


def test_c_core_knows_the_same_removals():
    source = (SOURCES / "module.c").read_text()
    names = source.partition("static const char *const removing[] = {")[2].partition("};")[0]
    assert set(re.findall(r'"(\w+)"', names)) == methods_with(MethodEffect.REMOVES)


def test_methods_that_need_a_stand_in_have_one_in_c():
    source = (SOURCES / "ops" / "methods.c").read_text()
    assert set(re.findall(r'PROXY_METHOD\("(\w+)"\)', source)) == {
        name for name, fields in rows().items() if any(field.startswith("act_") for field in fields)}


def test_reference_model_knows_the_same_methods():
    assert ops_methods.METHOD_NAMES == CONTAINER_METHODS


def test_every_core_knows_the_same_pairs_of_lock_methods():
    source = (SOURCES / "locking" / "foreign_locks.c").read_text()
    table = source.partition("lock_pairs[] = {")[2].partition("};")[0]
    pairs = dict(re.findall(r'\{"(\w+)", "(\w+)"\}', table))
    assert set(pairs) == LOCK_METHODS
    assert pairs | {"__enter__": "__exit__"} == foreign_locks.PARTNERS
    acquiring = set(re.findall(r'PyUnicode_CompareWithASCIIString\(name, "(\w+)"\)', source))
    assert acquiring == foreign_locks.ACQUIRING


def test_every_core_has_every_op():
    from gilscope.toolkit.race.confirm.ops import PausingOps
    from gilscope.toolkit.race.loading.shutdown_ops import operations

    assert set(build.load().ops) == set(operations()) == set(OPS)
    assert not [name for name in OPS if not hasattr(PausingOps, name)]
