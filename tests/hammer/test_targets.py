"""Recipes that become calls, and which C functions they reach: those of modules of the standard library."""

import array
import sys
import types
from bisect import insort

import pytest

from gilscope.toolkit.hammer.calls import CallRecipe
from gilscope.toolkit.hammer.targets import (
    DefinedCallables,
    ReachedFunctions,
    RepeatableCall,
    full_name,
    home,
    owner,
    public_callables,
)

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
    names = DefinedCallables(["array"]).public
    assert {"array", "array.append", "array.tobytes"} <= {*names}
    assert not any(name.rpartition(".")[2].startswith("_") for name in names)
    assert "ArrayType" not in names    # another name of `array`
    monkeypatch.setattr(sys.modules["array"], "borrowed", insort, raising=False)
    assert "borrowed" not in DefinedCallables(["array"]).public


class OfPython:
    """A class that an extension module may import."""

    __module__ = "pkg"


def kind(stated, **members):
    """Return a type as C code makes one: without the line of a class statement."""
    return type("Kind", (), {"__module__": stated, **members})


@pytest.mark.parametrize(("value", "is_its_own"), [
    (kind("pkg._c"), True),
    (kind("pkg"), True),                  # named after its package
    (kind("pkg.shown"), True),
    (kind("_c"), True),                   # of no module that exists
    (kind("builtins"), True),             # without a module
    (kind("array"), False),
    (kind("pkg", add=lambda _: 1), False),     # what `namedtuple` makes
    (int, False),
    (types.FunctionType, False),
    (OfPython, False),
])
def test_type_of_a_c_module_may_state_another_module(value, is_its_own, monkeypatch):
    for name in ("pkg", "pkg.shown", "pkg._c"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["pkg._c"].Kind = value
    compiled = DefinedCallables(["pkg._c"])
    assert compiled.public == ["Kind"] * is_its_own
    assert compiled.name(value) == "Kind" * is_its_own


@pytest.mark.parametrize(("value", "offered"), [
    (kind("builtins", put=len), True), (kind("no.such.module", put=len), True), (kind("array", put=len), False),
    (int, False)])
def test_type_that_states_no_module_is_offered_by_the_package_whose_extension_module_holds_it(
        value, offered, monkeypatch):
    package, compiled = types.ModuleType("pkg"), types.ModuleType("pkg._c")
    compiled.__file__ = "/x/pkg/_c.cpython-314t-x86_64-linux-gnu.so"
    compiled.Kind = package.Kind = value
    for each in (package, compiled):
        monkeypatch.setitem(sys.modules, each.__name__, each)
    assert [name for name, _ in public_callables(package)] == ["Kind", "Kind.put"] * offered
    assert home(value) == ("pkg._c" if offered else "array" if value is not int else "")


def test_type_named_after_a_package_belongs_to_the_one_module_that_says_so(monkeypatch):
    made = kind("pkg._a")
    for name in ("pkg", "pkg._a", "pkg._b"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        sys.modules[name].Kind = made
    assert DefinedCallables(["pkg._b", "pkg._a"]).public == ["Kind"]
    assert DefinedCallables(["pkg._b"]).public == ["Kind"]


def test_second_function_of_a_name_has_its_module_before_it_and_aliases_have_none(monkeypatch):
    first, second = types.ModuleType("pkg._a"), types.ModuleType("pkg._b")
    for module in (first, second):
        exec("def add(): ...\nplus = add\nclass Counter:\n    def put(self): ...", vars(module))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    defined = DefinedCallables(["pkg._a", "pkg._b"])
    assert defined.public == ["add", "Counter", "Counter.put", "pkg._b.add", "pkg._b.Counter", "pkg._b.Counter.put"]
    assert [*map(defined.name, (first.plus, second.add, second.Counter().put))] == [
        "add", "pkg._b.add", "pkg._b.Counter.put"]


def test_submodules_that_c_code_made_are_looked_through(monkeypatch):
    outer, inner = types.ModuleType("pkg._c"), types.ModuleType("pkg._c.inside")
    inner.Kind = kind("pkg._c.inside")
    outer.inside, inner.outer, outer.sys = inner, outer, sys
    monkeypatch.setitem(sys.modules, "pkg._c", outer)
    assert DefinedCallables(["pkg._c"]).public == ["Kind"]


def test_reached_functions_are_those_of_the_modules():
    values = array.array("i", [2, 1])

    class Derived(array.array):
        def python(self): ...

    with ReachedFunctions(DefinedCallables(["array", "_bisect"])) as reached:
        insort([], 1)
        made = array.array("i")
        made.append(1)
        len(values)          # a slot of the type
        Derived("i").extend([1])
        Derived("i").python()
        sorted([2, 1])       # of another module
    values.append(3)         # nobody watches any more
    assert reached.names == {"insort_right", "array", "array.append", "array.len", "array.extend"}
    values.pop()
    assert "array.pop" not in reached.names


def test_method_of_python_in_a_class_derived_from_c_is_not_a_compiled_one():
    class Derived(array.array):
        def python(self): ...

    compiled = DefinedCallables(["array"])
    assert compiled.name(Derived("i").append) == "array.append"
    assert compiled.name(Derived("i").python) == ""
