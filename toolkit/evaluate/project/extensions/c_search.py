"""Find what only the GIL makes safe in C and C++: writes, borrowed references, iteration."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.c_calls import KEYWORDS, SAFE_TYPES, CallGraph
from gilscope.toolkit.evaluate.project.extensions.c_expressions import WORDS, bare, is_number, pointer_of, root
from gilscope.toolkit.evaluate.project.extensions.c_tree import Write, line_of_node, text_of
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Remark
from gilscope.toolkit.evaluate.project.extensions.source_text import RISKY_CALLS, risky_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.project.extensions.c_tree import Call, CVariable, Function, Unit
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import Concern

    Node = Any   # tree_sitter.Node

LOCK_AROUND = "Py_BEGIN_CRITICAL_SECTION(self) or PyMutex_Lock around it, where threads may share the object"
LOCK_AROUND_CPP = "a std::lock_guard around it, or std::atomic, where threads may share the object"
GUARD_OBJECT = "set it once in the module's exec slot, move it to the module's state, or guard it"
GUARD_VARIABLE = "a lock, an atomic, or thread_local"
FILL_EARLY = "fill it in the module's exec slot or when the object is made, or look and fill under one lock"
GUARD_STATE = "all threads share it: a PyMutex in the state around what changes after the import"
ITERATE = "Py_BEGIN_CRITICAL_SECTION around the loop; in pybind11 py::scoped_critical_section"
NEW_REFERENCE = "take a new reference (Py_NewRef) before the lock is released"
_STATE = re.compile(r"(?:PyModule_GetState|PyType_GetModuleState|PyState_\w+|\w*get_\w*state\w*)$")
_BORROWS_NO_CONTAINER = {"PySys_GetObject", "PyEval_GetLocals", "PyEval_GetGlobals", "PyImport_AddModule",
                         "PyImport_AddModuleObject"}
_GIVES_UP = re.compile(r"Py_(?:X?DECREF|CLEAR)$")
# Functions that get an address and write nothing there, by their names, and those that are known as writing elsewhere.
_READS = re.compile(
    r"mem(?:cmp|chr|cpy|move|set)$|^str|cmp$|^free$|realloc$|[fs]?n?printf$|scanf$|^f?write$"
    r"|^Py(?:Arg|Mem)_|^PyObject_(?!GetBuffer)|PyBuffer_Release$|Py_[A-Z]+$|PyEvent"
    r"|From|As[A-Z]|Check|Compare|[Ee]qual|[Hh]ash$|^is|Is[A-Z]|[Ll]en(?:gth)?$|[Ss]ize$"
    r"|[Ll]ock|[Mm]utex|atomic|ATOMIC|CRITICAL|[Oo]nce|[Cc]ond(?:ition)?_|thread|tss")
_PYTHON_CONTAINERS = re.compile(r"\b(?:py|nb|pybind11|nanobind)\s*::\s*(?:dict|list|set)\b")


class Search(CallGraph):
    """The search through all C and C++ sources of a project at once."""

    def remarks(self, unit: Unit) -> Iterator[Remark]:
        """Yield the remarks on one source, those on its macros included."""
        for function in unit.functions:
            if function.name in self.unused:
                continue
            for each in (*self._writes(function), *self._risky(function), *self._loops(function)):
                yield replace(each, line=unit.source.line(each.line))
        for line, body in unit.macros.values():
            yield from (Remark(line=line, concern=each.concern, what=each.what, instead=each.instead)
                        for each in risky_calls(body))

    # -- writes -------------------------------------------------------------------------------------------------------

    def _writes(self, function: Function) -> Iterator[Remark]:
        for write in (*function.writes, *self._given_addresses(function)):
            if self.holds(function, write.start):
                continue
            target = _target(write)
            name, through = root(target)
            words = " ".join(text_of(target).split())
            if self._last_field(target) in self.safe_fields:
                continue
            line = line_of_node(write.target)
            variable = self._variable(function, name)
            if variable is not None:
                yield from self._shared_write(function, write, variable, words, line)
            elif not through and self._points_to_shared(function, write):
                yield from self._field_write(function, write, pointer_of(target), words, line, through=True)
            elif name or through:
                yield from self._field_write(function, write, name, words, line, through=through)

    def _given_addresses(self, function: Function) -> Iterator[Write]:
        """Yield the fields whose address a function outside of the project gets, which may write to them.

        A declaration in the project's headers shows which of the parameters are const; of others, the name tells.
        """
        for call in function.calls:
            called = text_of(call.node.child_by_field_name("function"))
            if called != call.name or call.name.isupper() or self.is_known(function, call.name) or (
                    _READS.search(call.name)):
                continue
            for place, each in enumerate(call.arguments):
                given = bare(each)
                inner = given.child_by_field_name("argument") if text_of(given).startswith("&") else None
                if inner is not None and root(inner)[1] and not self.gets_constant(call.name, place):
                    yield Write(target=inner, start=call.start, blocks=call.blocks, tests=())

    def _points_to_shared(self, function: Function, write: Write) -> bool:
        """Return True for `*p = 1` and its like, where p points into an object that others may have."""
        target = bare(write.target)
        reached = write.pointed or target.type in {"pointer_expression", "subscript_expression", "field_expression"}
        return reached and self.points_into_shared(function, pointer_of(target), write.start, write.blocks)

    def _variable(self, function: Function, name: str) -> CVariable | None:
        """Return the variable that all threads share and that a name stands for; None for another."""
        local = function.locals.get(name)
        if local is not None:
            return local if local.static else None
        if not name or function.parameter(name) >= 0 or name in self.fields.get(function.owner, {}):
            return None
        return self.shared.get(name)

    def _shared_write(self, function: Function, write: Write, variable: CVariable, words: str,
                      line: int) -> Iterator[Remark]:
        if SAFE_TYPES.search(variable.type) or function.name in self.imports_only or function.module_body:
            return
        if re.search(r"\bconst\b", variable.type) and not variable.pointer:
            return
        kind = "PyObject *" if variable.pointer else ""
        if self._tests(write, words):
            yield _remark(line, "lazy cache", words, FILL_EARLY)
        else:
            yield _remark(line, "state", words, GUARD_OBJECT if kind and "Object" in variable.type else GUARD_VARIABLE)

    @staticmethod
    def _tests(write: Write, words: str) -> bool:
        """Return True if a condition around a write asks whether its target is set already."""
        quoted = re.escape(words)
        asks = re.compile(rf"!\s*{quoted}(?![\w.\[(-])"
                          rf"|(?<![\w.>]){quoted}\s*[!=<]=?\s*(?:NULL|nullptr|-?\s*[01]\b|Py_None)"
                          rf"|(?:NULL|nullptr)\s*==\s*{quoted}(?!\w)")
        return any(asks.search(" ".join(each.split())) for each in write.tests)

    def _field_write(self, function: Function, write: Write, name: str, words: str, line: int, *,
                     through: bool) -> Iterator[Remark]:
        own = self.fields.get(function.owner, {})
        member = name in own and name not in function.locals and function.parameter(name) < 0
        if function.module_body or (function.name in self.exclusive and not self._is_of_counted(function, write)) or (
                self._is_private_write(function, write, name, member=member, through=through)):
            return
        if self._is_state(function, name):
            yield _remark(line, "module state", words, GUARD_STATE)
        elif self._tests(write, words):
            yield _remark(line, "lazy cache", words, FILL_EARLY)
        else:
            cpp = member or name == "this" or not through
            yield _remark(line, "unlocked write", words, LOCK_AROUND_CPP if cpp else LOCK_AROUND)

    def _is_private_write(self, function: Function, write: Write, name: str, *, member: bool, through: bool) -> bool:
        """Return True if no other thread has what a field belongs to."""
        if member or name == "this":
            own = self.fields.get(function.owner, {})
            return self._is_member_private(function) or (member and SAFE_TYPES.search(own[name]) is not None)
        place = function.parameter(name)
        if self._is_of_local_type(function, place, bare(write.target)):
            return True
        if not through:   # of C++: a parameter by reference; others are the function's own
            written = bare(write.target).type in {"field_expression", "subscript_expression"} or write.method
            given = function.parameters[place] if place >= 0 else None
            return (given is None or not (given.reference and written) or "const " in given.type
                    or (function.name, place) in self.private_parameters)
        if self.is_local_value(function, name) and "->" not in text_of(bare(write.target)):
            return True
        at = (function, name, write.start, write.blocks)
        return bool(name) and self.is_private_name(*at) and not self.is_given_away(*at)

    @staticmethod
    def _is_of_counted(function: Function, write: Write) -> bool:
        """Return True for a field of another object, `self->other->field`, of which the function gives up a reference.

        A function that has `self` for itself shares the other object.
        """
        target = bare(write.target)
        owner = bare(target.child_by_field_name("argument")) if target.type == "field_expression" else None
        return owner is not None and owner.type == "field_expression" and any(
            _GIVES_UP.match(call.name) and text_of(bare(each)) == text_of(owner)
            for call in function.calls for each in call.arguments)

    def _is_of_local_type(self, function: Function, place: int, target: Node) -> bool:
        """Return True for a field of what a parameter points to, if each of its type is some function's local variable.

        What such a field points to may be anybody's.
        """
        if place < 0 or target.type != "field_expression" or not self.local_types.intersection(
                WORDS.findall(function.parameters[place].type)):
            return False
        inner = target
        while inner.type == "field_expression":
            outer, inner = inner, bare(inner.child_by_field_name("argument"))
        if inner.type == "pointer_expression" and text_of(inner).startswith("*"):   # (*d).year is d->year
            inner = bare(inner.child_by_field_name("argument"))
        return (inner.type == "identifier" and function.parameters[place].pointer
                and text_of(target).count("->") == text_of(outer).count("->"))

    def _is_member_private(self, function: Function) -> bool:
        """Return True if nothing known calls a method on an object that threads may share."""
        if function.owner in self.bound:
            return False
        calls = self.callers.get(function.name, [])
        return not calls or all(
            self.holds(by, call.start) or by.name in self.exclusive or by.owner == function.owner
            or self._on_private(by, call) for by, call in calls)

    def _on_private(self, function: Function, call: Call) -> bool:
        called = call.node.child_by_field_name("function")
        if called.type != "field_expression":
            return False
        name, through = root(called.child_by_field_name("argument"))
        return (not through and self.is_local_value(function, name)) or self.is_private_name(
            function, name, call.start, call.blocks)

    def _is_state(self, function: Function, name: str) -> bool:
        return any(_STATE.match((WORDS.findall(text_of(bare(each.value)).partition("(")[0]) or [""])[-1])
                   for each in function.assignments.get(name, []))

    def _last_field(self, target: Node) -> str:
        while target.type in {"subscript_expression", "parenthesized_expression", "pointer_expression"}:
            target = target.child_by_field_name("argument") or target.named_children[0]
        if target.type == "field_expression":
            named = target.child_by_field_name("field")
            return text_of(named) if named is not None else ""
        return ""

    # -- risky calls --------------------------------------------------------------------------------------------------

    def _risky(self, function: Function) -> Iterator[Remark]:
        for call in function.calls:
            if call.name not in RISKY_CALLS:
                continue
            concern, instead = RISKY_CALLS[call.name]
            if concern != "allocation" and self._is_call_safe(function, call, concern):
                if concern == "borrowed reference" and self._outlives_lock(function, call):
                    yield _remark(line_of_node(call.node), concern, call.name, NEW_REFERENCE)
                continue
            yield _remark(line_of_node(call.node), concern, call.name, instead)

    def _is_call_safe(self, function: Function, call: Call, concern: Concern) -> bool:
        """Return True if a lock is held, the module is being imported, or no other thread has the container."""
        if self.holds(function, call.start) or function.name in self.imports_only or function.module_body:
            return True
        if concern == "borrowed reference" and _is_only_asked(call.node):
            return True
        if call.name in _BORROWS_NO_CONTAINER or not call.arguments:
            return False
        container = bare(call.arguments[0])
        name = text_of(container)
        if name in KEYWORDS and self.is_given_by_interpreter(function, name):
            return True
        if concern == "no lock" and call.name == "PyList_SET_ITEM" and not self._is_field(container):
            return self.is_private(function, container, call.start, call.blocks) or function.parameter(name) < 0
        return self.is_private(function, container, call.start, call.blocks)

    @staticmethod
    def _is_field(node: Node) -> bool:
        return bool(node.type == "field_expression")

    def _outlives_lock(self, function: Function, call: Call) -> bool:
        """Return True if a borrowed reference taken under a lock is used after its release, without one of its own."""
        parent = call.node.parent
        while parent is not None and parent.type in {"cast_expression", "parenthesized_expression"}:
            parent = parent.parent
        named = None
        if parent is not None and parent.type in {"assignment_expression", "init_declarator"}:
            named = parent.child_by_field_name("left") or parent.child_by_field_name("declarator")
        words = WORDS.findall(text_of(named)) if named is not None else []
        if not self.holds(function, call.start) or not words or "." in text_of(named) or "->" in text_of(named):
            return False
        name = words[-1]
        again = [each.start for each in function.assignments.get(name, []) if each.start > call.start]
        later = [place for place in function.names.get(name, []) if place > call.start
                 and not self.holds(function, place) and (not again or place < min(again))]
        kept = later and any(call.start < each.start < min(later) and re.search(r"INCREF|NewRef", each.name) and any(
            name in WORDS.findall(text_of(argument)) for argument in each.arguments) for each in function.calls)
        return bool(later) and not kept

    def _loops(self, function: Function) -> Iterator[Remark]:
        """Yield the range loops of C++ over containers of Python that others may change meanwhile."""
        for loop, container in function.loops:
            if container is None or self.holds(function, loop.start_byte) or function.module_body:
                continue
            name = text_of(bare(container))
            place = function.parameter(name)
            variable = function.parameters[place] if place >= 0 else self._variable(function, name)
            words = variable.type if variable is not None else self.fields.get(function.owner, {}).get(name, "")
            if _PYTHON_CONTAINERS.search(words) and name not in KEYWORDS and (
                    function.name, place) not in self.private_parameters:
                yield _remark(line_of_node(loop), "no lock", f"for (... : {name})", ITERATE)


def _is_only_asked(node: Node) -> bool:
    """Return True for a call of which only whether it returns NULL counts."""
    while node.parent is not None and node.parent.type == "parenthesized_expression":
        node = node.parent
    above = node.parent
    if above is None:
        return False
    if above.type == "binary_expression":
        other = above.child_by_field_name("right" if above.child_by_field_name("left") == node else "left")
        words = text_of(above.child_by_field_name("operator"))
        return words in {"&&", "||"} or (words in {"==", "!="} and is_number(other))
    return (above.type == "unary_expression" and text_of(above).startswith("!")) or (
        above.type in {"if_statement", "while_statement"})


def _target(write: Write) -> Node:
    """Return the expression that a write changes: `p` of `memcpy(p + 1, ...)`, `p->a` of `memcpy(&p->a, ...)`."""
    target = bare(write.target)
    while write.pointed and (target.type == "binary_expression" or (
            target.type == "pointer_expression" and text_of(target).startswith("&"))):
        target = bare(target.child_by_field_name("left") or target.child_by_field_name("argument"))
    return target


def _remark(line: int, concern: Concern, what: str, instead: str) -> Remark:
    return Remark(line=line, concern=concern, what=what, instead=instead)
