"""The lines of a program that use an object, among those that a call executes."""

import functools
import json
import sys

import pytest

from tests.conformance.builds import run_child

FILE = "tests/scale/used_program.py"
# Expressions in the program, or of the payload, with the lines that use the object.
USED = {
    "program.PROVIDER": [(13, "Provider.price"), (53, "f.<locals>.<genexpr>"), (62, "f")],
    "program.PROVIDER.factor": [(13, "Provider.price")],
    "program.Provider.limits": [(62, "f")],
    "program.SLOTTED.rate": [(62, "f")],
    "program.TABLE": [(56, "f")],
    "program.TABLE[3]": [(56, "f")],
    "program.CONVERT.__closure__[0].cell_contents": [(37, "make.<locals>.convert")],
    "program.CONVERT.__closure__[0]": [(37, "make.<locals>.convert")],
    "program.f.__code__.co_consts[program.f.__code__.co_consts.index(1000003)]": [(57, "f")],
    "program.UNUSED": [],
    "program.used_values.SHARED": [(62, "f")],
    "payload": [(62, "f")],
    "payload['rates']": [(62, "f")],
}
PROGRAM = f"""
import json
from gilscope.toolkit.scale.child.places import places_of
from tests.scale import used_program as program
payload = {{"rates": [object()]}}
wanted = [eval(each) for each in {list(USED)!r}]
first = places_of(wanted, [lambda: program.f(payload)])
print(json.dumps([first, places_of(wanted, [lambda: program.f(payload)])]))
"""


@functools.cache
def found(python):
    done = run_child(python, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.builds("gil", "free")
def test_lines_that_use_an_object(python):
    places = dict(zip(USED, found(python)[0], strict=True))
    assert {file for found_places in places.values() for file, _, _ in found_places} == {FILE}
    assert {expression: sorted((line, function) for _, line, function in each)
            for expression, each in places.items()} == {expression: sorted(lines) for expression, lines in USED.items()}


def test_watching_ends_with_the_calls():
    first, second = found(sys.executable)
    assert first == second


@pytest.mark.builds("gil", "free")
def test_function_on_one_line_uses_what_is_there_and_a_default_is_no_use(python):
    program = """
import json
from gilscope.toolkit.scale.child.places import places_of
from tests.scale import used_program as program
print(json.dumps(places_of([program.TABLE, program.SLOTTED.rate], [program.g, program.with_default])))
"""
    done = run_child(python, "-c", program)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[[FILE, 65, "g"]], [[FILE, 68, "<lambda>"]]]


def test_line_that_raises_is_no_error_of_ours():
    program = """
from gilscope.toolkit.scale.child.places import places_of
import sys
def f():
    raise LookupError("mine")
try:
    places_of([f], [f])
except LookupError as error:
    print(error, [sys.monitoring.get_tool(each) for each in range(6)])
"""
    done = run_child(sys.executable, "-c", program)
    assert done.stdout == f"mine {[None] * 6}\n", done.stderr
