"""Objects by the name that a reader of the program knows, in a process without the many objects of pytest."""

import functools
import json
import sys

import pytest

from gilscope.toolkit.scale.blamed_object import BlamedObject
from gilscope.toolkit.scale.child.names import unnamed
from gilscope.toolkit.scale.child.reachable import within
from tests.conformance.builds import run_child

NAME = "tests.scale.named_program"
# Expressions in the program, or of the payload, with the name and the kind.
NAMED = {
    "program.TABLE": (f"{NAME}.TABLE", "global"),
    "program.TABLE[3]": (f"the value of {NAME}.TABLE[3]", "item"),
    "program.TABLE['k' * 100]": (f"the value of {NAME}.TABLE['{'k' * 39}...]", "item"),
    "program.CONFIG": (f"{NAME}.CONFIG", "global"),
    "program.CONFIG.rate": (f"{NAME}.CONFIG.rate", "attribute"),
    "program.PLAIN.inner": (f"{NAME}.PLAIN.inner", "attribute"),
    "program.Config": (f"class {NAME}.Config", "class"),
    "program.Config.limits": (f"class {NAME}.Config (attribute limits)", "class attribute"),
    "program.Special": (f"class {NAME}.Special", "class"),
    "program.Color.RED": (f"class {NAME}.Color (attribute RED)", "class attribute"),
    "program.INNER.__closure__[0]": ("cell x of make()", "cell"),
    "program.INNER.__closure__[0].cell_contents": ("the value of cell x of make()", "item"),
    "program.f": (f"{NAME}.f()", "function"),
    "program.f.__code__": ("code of f()", "code"),
    "program.f.__code__.co_consts[program.f.__code__.co_consts.index((4, 'five'))]": (
        "constant <tuple> in f()", "constant"),
    "program.HANDLER.lock": (f"{NAME}.HANDLER.lock", "log handler"),
    "program.LOCK": (f"{NAME}.LOCK", "global"),
    "program.STAMP.tzinfo": (f"{NAME}.STAMP.tzinfo", "attribute"),     # the collector does not know that it is stored
    "program.PART.args[0]": (f"the value of {NAME}.PART.args[0]", "item"),
    "program.RATES['eu']['de']['same']": (f"the value of {NAME}.RATES['eu']['de']['same']", "item"),
    "payload": ("argument conf", "argument"),
    "payload['rates']": ("argument conf['rates']", "item"),
    "payload['rates'][0]": ("argument conf['rates'][0]", "item"),
    "program.re.Match": ("class re.Match", "class of C"),
    "program.FAILED": ("class ValueError", "class of C"),
    "made": ("an object of type object", "unknown"),
}
PROGRAM = f"""
import json, sys
from gilscope.toolkit.scale.child.names import names_of
from tests.scale import named_program as program
payload = {{"rates": [object()], "\\x1b[31m": object()}}
made = (lambda: object())()
space = {{"program": program, "payload": payload, "made": made}}
del sys.modules["__main__"]
wanted = [eval(each, space) for each in {list(NAMED)!r}]
both = names_of([payload["\\x1b[31m"]], "{NAME}:f", [{{}}, payload])
print(json.dumps([names_of(wanted, "{NAME}:f", [payload]), both]))
"""


@functools.cache
def found(python):
    done = run_child(python, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.builds("gil", "free")
def test_objects_have_their_names_in_the_program(python):
    named = dict(zip(NAMED, found(python)[0], strict=True))
    assert {expression: (each["name"], each["kind"]) for expression, each in named.items()} == NAMED


def test_owner_groups_what_belongs_to_one_global():
    owners = dict(zip(NAMED, (each["owner"] for each in found(sys.executable)[0]), strict=True))
    assert owners["program.TABLE[3]"] == owners["program.TABLE"] == f"{NAME}.TABLE"
    assert owners["program.PLAIN.inner"] == f"{NAME}.PLAIN"
    assert owners["payload['rates']"] == "argument conf"


def test_holder_of_an_object_is_a_global_or_an_argument():
    holders = dict(zip(NAMED, ((each["held"], each["argument"], each["ours"]) for each in found(sys.executable)[0]),
                       strict=True))
    assert holders["program.TABLE[3]"] == ([NAME, "TABLE"], False, False)
    assert holders["payload['rates']"] == (None, True, False)


def test_object_that_is_not_searched_for_has_the_name_of_its_type():
    (each,) = unnamed([1.5])
    assert (each["name"], each["owner"], each["kind"]) == ("an object of type float", "an object of type float",
                                                           "unknown")
    assert (each["held"], each["argument"], each["ours"]) == (None, False, False)
    assert unnamed([BlamedObject(name="a", kind="global", type="b")])[0]["ours"]


@pytest.mark.parametrize(("module", "ours"), [("gilscope", True), ("gilscope.toolkit.model", True),
                                              ("gilscope_plugin", False), ("mygilscope.part", False)])
def test_names_that_only_begin_like_gilscope_are_not_gilscopes(module, ours):
    assert within(module) is ours


def test_payload_is_numbered_where_there_are_several_and_control_characters_are_written_out():
    (named,) = found(sys.executable)[1]
    assert named["name"].startswith("argument conf of payload 2[")
    assert named["owner"] == "argument conf"      # threads use all of their payloads
    assert "\x1b" not in named["name"]
