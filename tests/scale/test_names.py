"""Objects by the name that a reader of the program knows."""

import pytest

from gilscope.toolkit.scale.child.names import names_of
from tests.scale import named_program as program

NAME = "tests.scale.named_program"


def named(each, payloads=None):
    (found,) = names_of([each], f"{NAME}:f", payloads)
    return found


@pytest.mark.parametrize(("each", "name", "kind"), [
    (program.TABLE, f"{NAME}.TABLE", "global"),
    (program.TABLE[3], f"the value of {NAME}.TABLE[3]", "item"),
    (program.TABLE["k" * 100], f"the value of {NAME}.TABLE['{'k' * 39}...]", "item"),
    (program.CONFIG, f"{NAME}.CONFIG", "global"),
    (program.CONFIG.rate, f"{NAME}.CONFIG.rate", "attribute"),
    (program.PLAIN.inner, f"{NAME}.PLAIN.inner", "attribute"),
    (program.Config, f"class {NAME}.Config", "class"),
    (program.Config.limits, f"class {NAME}.Config (attribute limits)", "class attribute"),
    (program.Color.RED, f"class {NAME}.Color (attribute RED)", "class attribute"),
    (program.INNER.__closure__[0], "cell x of make()", "cell"),
    (program.INNER.__closure__[0].cell_contents, "the value of cell x of make()", "item"),
    (program.f, f"{NAME}.f()", "function"),
    (program.f.__code__, "code of f()", "code"),
    (program.f.__code__.co_consts[program.f.__code__.co_consts.index((4, "five"))], "constant <tuple> in f()",
     "constant"),
    (program.LOCK, f"{NAME}.LOCK", "global"),
    (program.PART.args[0], f"the value of {NAME}.PART.args[0]", "item"),
])
def test_object_has_the_name_in_the_program(each, name, kind):
    found = named(each)
    assert (found["name"], found["kind"]) == (name, kind)


def test_argument_is_named_by_its_parameter():
    payload = {"rates": [object()], "name": object()}
    assert named(payload, [payload])["name"] == "argument conf"
    found = named(payload["rates"], [payload])
    assert (found["name"], found["owner"]) == ("argument conf['rates']", "argument conf")
    assert named(payload["name"], [{}, payload])["name"] == "argument conf of payload 2['name']"


def test_owner_groups_what_belongs_to_one_global():
    owners = {named(each)["owner"] for each in (program.TABLE, program.TABLE[3])}
    assert owners == {f"{NAME}.TABLE"}
    assert named(program.PLAIN.inner)["owner"] == f"{NAME}.PLAIN"


def test_object_that_nothing_leads_to_is_named_by_its_type_alone():
    found = named(object())
    assert (found["name"], found["kind"]) == ("an object of type object", "unknown")


def test_global_is_named_by_the_module_of_the_function_first():
    import gc
    found = named(gc)     # a module that many modules have
    assert (found["name"], found["kind"]) == ("module gc", "module")


def test_control_characters_in_a_key_are_written_out():
    payload = {"\x1b[31m": object()}
    assert "\x1b" not in named(payload["\x1b[31m"], [payload])["name"]
