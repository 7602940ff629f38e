"""The table of effects is the C core's and the reference model's; every core and stand-in knows the same ops."""

from pathlib import Path

from gilscope.toolkit.race._core import build, header
from gilscope.toolkit.race.effects import BUILTINS, EFFECTS, LIBRARY, METHODS, SYNTAX
from gilscope.toolkit.race.site import OPS
from tests.race.model import ops_methods


def test_header_of_the_c_core_is_made_from_the_table():
    assert Path(header.PATH).read_text() == header.text(), "run `python -m gilscope.toolkit.race._core.header`"


def test_rows_name_effects_of_the_table():
    functions = [function.effect for module in (BUILTINS, *LIBRARY.values()) for function in module.values()]
    named = {effect for method in METHODS.values() for effect in method.effects} | {*functions, *SYNTAX.values()}
    assert named - {""} <= set(EFFECTS)


def test_reference_model_knows_the_same_effects():
    assert set(ops_methods.CALLS) == {name for name, effect in EFFECTS.items() if effect.kind is None}


def test_every_core_has_every_op():
    from gilscope.toolkit.race.confirm.ops import PausingOps
    from gilscope.toolkit.race.loading.shutdown_ops import operations

    assert set(build.load().ops) == set(operations()) == set(OPS)
    assert not [name for name in OPS if not hasattr(PausingOps, name)]
