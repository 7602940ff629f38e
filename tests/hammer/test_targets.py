"""Recipes that become calls, and which C functions they reach: those of modules of the standard library."""

import array
import sys
from bisect import insort

import pytest

from gilscope.toolkit.hammer.calls import CallRecipe
from gilscope.toolkit.hammer.targets import ReachedFunctions, RepeatableCall, full_name, owner, public_names

APPEND = CallRecipe(imports=("from array import array",), setup=("values = array('i', [1])", "more = [2]"),
                    receiver="values", callee="extend", args=("more",), place="test_a.py:3")


def test_each_run_of_the_setup_makes_new_objects_and_the_arguments_are_its_own():
    call = RepeatableCall(APPEND)
    first, second = call.scope(), call.scope()
    assert first["values"] is not second["values"]
    receiver = call.receiver(first)
    assert receiver is first["values"]
    args, kwargs = call.arguments(first)
    assert args[0] is first["more"]
    assert call.arguments(first)[0][0] is args[0]
    call.function(first, receiver)(*args, **kwargs)
    assert (first["values"].tolist(), second["values"].tolist()) == ([1, 2], [1])


def test_function_has_no_receiver_and_keywords_are_passed():
    call = RepeatableCall(CallRecipe(imports=("import bisect",), setup=("values = [1, 3]",), callee="bisect.bisect",
                                     args=("values", "2"), kwargs=(("lo", "1"),), place="test_a.py:3"))
    scope = call.scope()
    assert call.receiver(scope) is None
    assert call.arguments(scope) == (([1, 3], 2), {"lo": 1})
    assert call.once() == 1


def test_names_of_a_doctests_module_need_no_import():
    call = RepeatableCall(CallRecipe(imports=(), setup=(), callee="bisect", args=("[1, 3]", "2"), module="bisect",
                                     place="bisect"))
    assert call.once() == 1


def test_failing_import_and_failing_call_raise():
    missing = CallRecipe(imports=("import no_such_module",), setup=(), callee="f", place="test_a.py:3")
    with pytest.raises(ModuleNotFoundError):
        RepeatableCall(missing)
    call = RepeatableCall(CallRecipe(imports=("import bisect",), setup=(), callee="bisect.bisect", place="test_a.py:3"))
    with pytest.raises(TypeError):
        call.once()


def test_recipe_survives_json():
    recipe = CallRecipe(imports=("import bisect",), setup=("a = 1",), callee="f", args=("a",), kwargs=(("lo", "1"),),
                        place="test_a.py:3")
    plain = {name: [list(each) if isinstance(each, tuple) else each for each in value]
             if isinstance(value, tuple) else value for name, value in recipe.plain().items()}
    assert CallRecipe.from_plain(plain) == recipe


@pytest.mark.parametrize(("found", "module", "name"), [
    (insort, "_bisect", "insort_right"),
    (array.array, "array", "array"),
    (array.array.append, "array", "array.append"),       # a descriptor
    (array.array("i").append, "array", "array.append"),  # bound
    (owner, "gilscope.toolkit.hammer.targets", "owner"),
    (3, "", ""),
])
def test_owner_and_name(found, module, name):
    assert (owner(found), full_name(found)) == (module, name)


def test_public_names_are_what_the_module_defines(monkeypatch):
    names = public_names(["array"])
    assert {"array", "array.append", "array.tobytes"} <= {*names}
    assert not any(name.rpartition(".")[2].startswith("_") for name in names)
    monkeypatch.setattr(sys.modules["array"], "borrowed", insort, raising=False)
    assert "borrowed" not in public_names(["array"])


def test_reached_functions_are_those_of_the_modules():
    values = array.array("i", [2, 1])
    with ReachedFunctions(["array", "_bisect"]) as reached:
        insort([], 1)
        made = array.array("i")
        made.append(1)
        len(values)          # a slot of the type
        sorted([2, 1])       # of another module
    values.append(3)         # nobody watches any more
    assert reached.names == {"insort_right", "array", "array.append", "array.len"}
    values.pop()
    assert "array.pop" not in reached.names
