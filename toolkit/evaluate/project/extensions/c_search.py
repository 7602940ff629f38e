"""Find what only the GIL makes safe in C and C++: writes, borrowed references, iteration.

Private is what no other thread has: an object that a function has just made, local variables, what a constructor fills,
whatever runs while the module is imported, and parameters that every caller gives something private.

Source of the locks: "C API Extension Support for Free Threading" of CPython's documentation: critical sections.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.c_tree import line_of_node, text_of
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Remark
from gilscope.toolkit.evaluate.project.extensions.source_text import RISKY_CALLS, risky_calls

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gilscope.toolkit.evaluate.project.extensions.c_tree import Call, Function, Unit, Variable, Write
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

_ACQUIRES = re.compile(r"(?:Py_BEGIN_CRITICAL_SECTION\w*|PyMutex_Lock\w*|pthread_(?:mutex|spin)_lock|"
                       r"pthread_rwlock_wrlock|PyThread_acquire_lock\w*|mtx_lock|EnterCriticalSection|"
                       r"AcquireSRWLockExclusive|PyCriticalSection\w*_Begin\w*)$")
_RELEASES = re.compile(r"(?:Py_END_CRITICAL_SECTION\w*|PyMutex_Unlock\w*|pthread_(?:mutex|spin|rwlock)_unlock|"
                       r"PyThread_release_lock|mtx_unlock|LeaveCriticalSection|ReleaseSRWLockExclusive|"
                       r"PyCriticalSection\w*_End\w*)$")
# Types that need no guard: constants, thread-local storage, locks and atomics.
_SAFE_TYPES = re.compile(
    r"\b(?:constexpr|constinit|_Thread_local|thread_local|__thread|_Atomic\w*|atomic\w*|PyMutex|mutex|shared_mutex|"
    r"recursive_mutex|once_flag|pthread_\w+_t|Py_tss_t|_PyOnceFlag|ft_mutex|gil_safe_call_once_and_store|"
    r"PyThread_type_lock)\b")
# Functions that run while no other thread has the object; the collector calls `clear` with all threads stopped.
_EXCLUSIVE = {"init", "new", "alloc", "create", "make", "dealloc", "free", "del", "delete", "destroy", "finalize",
              "fini", "traverse", "exec"}
_OBJECT_SLOTS = re.compile(r"\b(?:Py_)?(?:tp_(?:init|new|alloc|dealloc|free|finalize|del|traverse|clear)|"
                           r"m_(?:clear|traverse|free))\s*[,=]\s*(?:\([^()]*\)\s*)*(?:void_cast\()?&?\s*(\w+)"
                           r"|\(\s*(?:initproc|newfunc|destructor|traverseproc|inquiry|freefunc)\s*\)\s*(\w+)")
_EXEC_SLOTS = re.compile(r"\bPy_mod_exec\s*,\s*(?:\([^()]*\)\s*)*(?:\w+\s*<[^>]*>\s*\()?&?\s*(\w+)")
_ENTRY = re.compile(r"(?:PyInit_|PyModExport_|init)\w+$")
_MADE = re.compile(r"\w*(?:new|alloc|create|clone|copy|make|build|dup|from)\w*$", re.IGNORECASE)
_KEPT = re.compile(r"get|find|lookup|cached|intern|shared|_or_|state", re.IGNORECASE)
_NEW_CONTAINERS = re.compile(r"Py(?:List|Dict|Set|Tuple)_New$|Py_BuildValue$|PyDict_Copy$|PySequence_(?:List|Tuple)$|"
                             r"PyMapping_(?:Items|Keys|Values)$|PyDict_(?:Items|Keys|Values)$|PyList_(?:AsTuple|GetSlice)$|"
                             r"PyObject_Dir$|PyObject_CallNoArgs$")
_KEYWORDS = {"kwargs", "kwds", "kw", "keywds", "keywords"}
_STATE = re.compile(r"(?:PyModule_GetState|PyType_GetModuleState|PyState_\w+|\w*get_\w*state\w*)$")
_FILLED = re.compile(r"\b(?:Py_buffer|Py_complex|PyThreadState|PyConfig)\b")
_BORROWS_NO_CONTAINER = {"PySys_GetObject", "PyEval_GetLocals", "PyEval_GetGlobals", "PyImport_AddModule",
                         "PyImport_AddModuleObject"}
_PYTHON_CONTAINERS = re.compile(r"\b(?:py|nb|pybind11|nanobind)\s*::\s*(?:dict|list|set)\b")
_NUMBER = re.compile(r"(?:NULL|nullptr|0|-1|nil)$")
_FUNCTION_NAME = re.compile(r"\w+")
_MODULE_DEFINITION = re.compile(r"\bPyModuleDef\s+\w+\s*=\s*\{([^;]*)\}")
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc")
_CLASS = re.compile(r"\bclass_\s*<\s*(?:\w+\s*::\s*)*(\w+)")


class Search:
    """The search through all C and C++ sources of a project at once: what one file writes another may call."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units
        self._functions = [function for unit in units for function in unit.functions]
        self._shared: dict[str, Variable] = {}
        for unit in units:
            for name, variable in unit.shared.items():
                if name not in self._shared or not variable.type.startswith("extern"):
                    self._shared[name] = variable
        self._macros: dict[str, str] = {}
        for unit in units:
            for name, (_, body) in unit.macros.items():
                self._macros[name] = f"{self._macros.get(name, '')} {body}"
        self._fields: dict[str, dict[str, str]] = {}
        for unit in units:
            for owner, fields in unit.fields.items():
                self._fields.setdefault(owner, {}).update(fields)
        self._safe_fields = {name for fields in self._fields.values() for name, words in fields.items()
                             if _SAFE_TYPES.search(words)}
        self._acquiring, self._releasing = self._locking_names()
        self._held = {id(function): self._held_ranges(function) for function in self._functions}

    def remarks(self, unit: Unit) -> Iterator[Remark]:
        """Yield the remarks on one source, those on its macros included."""
        for function in unit.functions:
            if function.name in self._unused:
                continue
            yield from self._writes(function)
            yield from self._risky(function)
            yield from self._loops(function)
        for line, body in unit.macros.values():
            yield from (Remark(line=line, concern=each.concern, what=each.what, instead=each.instead)
                        for each in risky_calls(body))

    @cached_property
    def _unused(self) -> set[str]:
        """Return the inline functions of headers that nothing here calls or names, but others of these."""
        found = {name for name, functions in self._named.items() if name not in self._referenced and all(
            each.file.endswith(_HEADERS) and not each.owner and "static" in each.head for each in functions)}
        while used := {name for name in found
                       if any(by.name not in found for by, _ in self._callers.get(name, ()))}:
            found -= used
        return found

    # -- locks --------------------------------------------------------------------------------------------------------

    def _locking_names(self) -> tuple[set[str], set[str]]:
        """Return the project's macros and functions that acquire, or release, a lock for their caller."""
        acquiring: set[str] = set()
        releasing: set[str] = set()
        texts = {name: {*_FUNCTION_NAME.findall(body)} for name, body in self._macros.items()}
        # C++: a macro that calls lock() of a static lock.
        locked = {name for name, body in self._macros.items() if re.search(r"[.>]\s*(?:lock|acquire)\s*\(", body)}
        unlocked = {name for name, body in self._macros.items() if re.search(r"[.>]\s*(?:unlock|release)\s*\(", body)}
        acquiring |= locked - unlocked
        releasing |= unlocked - locked
        called = {function.name: {call.name for call in function.calls} for function in self._functions
                  if function.name}
        for _ in range(4):
            for name, words in (*texts.items(), *called.items()):
                takes = any(_ACQUIRES.match(word) or word in acquiring for word in words)
                gives = any(_RELEASES.match(word) or word in releasing for word in words)
                if takes and not gives:
                    acquiring.add(name)
                elif gives and not takes:
                    releasing.add(name)
        return acquiring, releasing

    def _held_ranges(self, function: Function) -> list[tuple[int, int]]:
        """Return the ranges of offsets in which a function holds a lock."""
        ranges = list(function.guards)
        held: list[Call] = []
        for call in sorted(function.calls, key=lambda each: each.start):
            method = call.node.child_by_field_name("function").type == "field_expression"
            if _ACQUIRES.match(call.name) or call.name in self._acquiring or (
                    method and call.name in {"lock", "acquire"}):
                held.append(call)
            elif held and (_RELEASES.match(call.name) or call.name in self._releasing or (
                    method and call.name in {"unlock", "release"})) and (
                        not self._leaves_early(function, held[-1], call)):
                ranges.append((held.pop().start, call.start))
        end = function.node.end_byte
        ranges += [(call.start, end) for call in held]
        return ranges

    @staticmethod
    def _leaves_early(function: Function, acquire: Call, release: Call) -> bool:
        """Return True for a release before a `return` or `goto` in an inner block: the rest still holds the lock."""
        if len(release.blocks) <= len(acquire.blocks):
            return False
        end = function.block_ends.get(release.blocks[-1], release.start)
        return any(release.start < place < end for place in function.leaves)

    def _holds(self, function: Function, place: int) -> bool:
        return any(start <= place < end for start, end in self._held[id(function)])

    # -- who calls whom -----------------------------------------------------------------------------------------------

    @cached_property
    def _named(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for function in self._functions:
            if function.name:
                found.setdefault(function.name, []).append(function)
        return found

    @cached_property
    def _callers(self) -> dict[str, list[tuple[Function, Call]]]:
        found: dict[str, list[tuple[Function, Call]]] = {}
        for function in self._functions:
            for call in function.calls:
                if call.name in self._named:
                    found.setdefault(call.name, []).append((function, call))
        return found

    @cached_property
    def _outside(self) -> str:
        return " ".join([*(unit.outside for unit in self._units)])

    @cached_property
    def _referenced(self) -> set[str]:
        """Return the functions that tables, macros, or others' arguments name: their callers are not known."""
        bodies = " ".join(self._unlocked(body) for body in self._macros.values())
        tables = re.sub(r"\b\w+\s*\([^(){}]*\)\s*;", " ", self._outside)   # declarations of functions
        found = {*_FUNCTION_NAME.findall(tables), *_FUNCTION_NAME.findall(bodies)} & self._named.keys()
        for function in self._functions:
            called = {call.node.child_by_field_name("function").start_byte for call in function.calls}
            for name in function.names.keys() & self._named.keys() - {function.name}:
                if name in function.locals or function.parameter(name) >= 0:
                    continue
                ends = {call.node.child_by_field_name("function").end_byte - len(name) for call in function.calls}
                if any(place not in called and place not in ends for place in function.names[name]):
                    found.add(name)
        return found

    def _unlocked(self, body: str) -> str:
        """Return what a macro does without a lock that it takes itself."""
        taken, parts = False, []
        for word in re.findall(r"\w+|[^\w]+", body):
            taken = (taken or _ACQUIRES.match(word) is not None or word in self._acquiring) and not (
                _RELEASES.match(word) or word in self._releasing)
            parts.append("" if taken else word)
        return "".join(parts)

    @cached_property
    def _locked_in_macros(self) -> set[str]:
        """Return the functions that macros call with a lock held."""
        return ({*_FUNCTION_NAME.findall(" ".join(self._macros.values()))} & self._named.keys()) - self._referenced

    @cached_property
    def _bound(self) -> set[str]:
        """Return the classes that a binding generator makes known to Python."""
        found: set[str] = set()
        for function in self._functions:
            if b"class_" in function.node.text:
                found |= set(_CLASS.findall(text_of(function.node)))
        return found

    @cached_property
    def _locked_by_binding(self) -> set[str]:
        """Return the methods that nanobind locks: `.def(..., &Class::method, nb::lock_self())`."""
        found: set[str] = set()
        for function in self._functions:
            for call in function.calls:
                if call.name.startswith("def") and any("lock_self" in text_of(each) for each in call.arguments):
                    found |= {match[1] for each in call.arguments
                              for match in [re.match(r"&\s*(?:\w+\s*::\s*)*(\w+)$", text_of(each))] if match}
        return found

    @cached_property
    def _imports_only(self) -> set[str]:
        """Return the functions that run only while the module is imported, by one thread."""
        roots = {match[1] for match in _EXEC_SLOTS.finditer(self._outside)} & self._named.keys()
        roots |= {name for name in self._named if _ENTRY.match(name) and (
            name.startswith(("PyInit_", "PyModExport_")) or name in self._init_functions)}
        roots |= {function.name for function in self._functions if function.module_body}
        # m_free, m_clear and m_traverse run when the module goes.
        roots |= {name for match in _MODULE_DEFINITION.finditer(self._outside)
                  for name in _FUNCTION_NAME.findall(match[1])} & self._named.keys()
        return self._only_called(roots)

    @cached_property
    def _init_functions(self) -> set[str]:
        return {name for name, functions in self._named.items()
                for function in functions if "PyMODINIT_FUNC" in function.head}

    @cached_property
    def _exclusive(self) -> set[str]:
        """Return the functions in which no other thread has the object."""
        slots = " ".join([self._outside, *self._macros.values()])
        in_slots = {name for match in _OBJECT_SLOTS.finditer(slots) for name in match.groups() if name}
        tables = set(_FUNCTION_NAME.findall(" ".join(re.findall(
            r'\{\s*""\s*,[^{}]*\}', " ".join([self._outside, *self._macros.values()])))))
        roots = {name for name, functions in self._named.items() if name not in tables and (
            name in in_slots or _last_word(name) in _EXCLUSIVE
            or any(each.owner and name.lstrip("~") == each.owner for each in functions))}
        clearing = {name for name in self._named.keys() - tables if _last_word(name) == "clear"
                    and name not in self._callers}
        return self._only_called(roots | self._imports_only | clearing | self._locked_by_binding)

    def _only_called(self, roots: Collection[str]) -> set[str]:
        """Return `roots`, and the functions that are only called by them or with a lock held."""
        within = {*self._callers, *self._locked_in_macros} - self._referenced - {*roots}
        while unsafe := {name for name in within if not all(
                self._holds(by, call.start) or by.name in roots or by.name in within
                for by, call in self._callers.get(name, ()))}:
            within -= unsafe
        return {*roots} | within

    # -- what is private ----------------------------------------------------------------------------------------------

    @cached_property
    def _private_parameters(self) -> set[tuple[str, int]]:
        """Return the parameters for which every caller gives something private, or holds a lock."""
        found = {(name, place) for name, functions in self._named.items()
                 if name in self._callers and name not in self._referenced
                 for place in range(max(len(each.parameters) for each in functions))}
        self.__dict__["_private_parameters"] = found   # the first guess; it is asked for while it is made smaller
        while unsafe := {(name, place) for name, place in found if not all(
                self._holds(by, call.start) or by.name in self._exclusive
                or (place < len(call.arguments)
                    and self._is_private(by, call.arguments[place], call.start, call.blocks))
                for by, call in self._callers[name])}:
            found -= unsafe
        return found

    @cached_property
    def _making(self) -> set[str]:
        """Return the functions that return something new."""
        found: set[str] = set()
        self.__dict__["_making"] = found
        for _ in range(3):
            for name, functions in self._named.items():
                for function in functions:
                    given = [each for each in function.returns if not _is_number(each[2])]
                    if given and all(self._is_private(function, value, start, blocks, parameters=False)
                                     for start, blocks, value in given):
                        found.add(name)
        return found

    def _is_private(  # noqa: PLR0911 - one for each kind of expression
            self, function: Function, value: Node, start: int, blocks: tuple[int, ...], *,
                    parameters: bool = True, seen: frozenset[str] = frozenset()) -> bool:
        """Return True if no other thread has a value: it was made here, or is a local variable's address."""
        value = _bare(value)
        match value.type:
            case "identifier":
                return self._is_private_name(function, text_of(value), start, blocks, parameters=parameters, seen=seen)
            case "call_expression":
                called = value.child_by_field_name("function")
                words = _FUNCTION_NAME.findall(text_of(called).split("<")[0] if called is not None else "")
                name = words[-1] if words else ""
                return (name in self._making or name == "tp_alloc" or _NEW_CONTAINERS.match(name) is not None
                        or (_MADE.match(name) is not None and not _KEPT.search(name)))
            case "new_expression" | "initializer_list" | "compound_literal_expression" | "string_literal":
                return True
            case "assignment_expression":
                right = value.child_by_field_name("right")
                return self._is_private(function, right, start, blocks, parameters=parameters, seen=seen)
            case "conditional_expression":
                parts = [value.child_by_field_name("consequence"), value.child_by_field_name("alternative")]
                return all(each is not None and (_is_number(each) or self._is_private(
                    function, each, start, blocks, parameters=parameters, seen=seen)) for each in parts)
            case "pointer_expression" if text_of(value).startswith("&"):
                inner = _bare(value.child_by_field_name("argument"))
                name, through = _root(inner)
                return (not through and self._is_local_value(function, name)) or (
                    bool(name) and self._is_private_name(function, name, start, blocks, parameters=parameters,
                                                         seen=seen))
            case "field_expression" | "subscript_expression":
                # What a new object points to is as new as itself, as far as one function shows.
                name, through = _root(value)
                return (not through and self._is_local_value(function, name)) or (bool(name) and self._is_private_name(
                    function, name, start, blocks, parameters=parameters, seen=seen))
        return False

    def _is_local_value(self, function: Function, name: str) -> bool:
        """Return True for a local variable, or a parameter given by value, that is no pointer or reference."""
        variable = function.locals.get(name) or next((each for each in function.parameters if each.name == name), None)
        return variable is not None and not (variable.static or variable.pointer or variable.reference or (
            variable.array and name not in function.locals))

    def _is_private_name(self, function: Function, name: str, start: int, blocks: tuple[int, ...], *,
                         parameters: bool = True, seen: frozenset[str] = frozenset()) -> bool:
        if not name or name in seen:
            return name in seen
        variable = function.locals.get(name)
        place = function.parameter(name)
        if (variable is None and place < 0) or (variable is not None and variable.static):
            return False
        if place >= 0 and _FILLED.search(function.parameters[place].type):
            return True
        values = self._values(function, name, start, blocks)
        if values is None:   # a parameter that may still have the caller's value
            return parameters and (function.name, place) in self._private_parameters
        values = [each for each in values if not _is_number(each.value)]
        return bool(values) and all(self._is_private(function, each.value, each.start, each.blocks,
                                                     parameters=parameters, seen=seen | {name}) for each in values)

    @staticmethod
    def _values(function: Function, name: str, start: int, blocks: tuple[int, ...]) -> list[Any] | None:
        """Return the assignments whose value a variable may have at a place; None if a caller's value is among them."""
        given = function.assignments.get(name, [])
        before = [each for each in given if each.start < start and blocks[:len(each.blocks)] == each.blocks]
        if before:
            last = max(before, key=lambda each: each.start)
            return [last, *(each for each in given if last.start < each.start < start and each is not last
                            and not _other_branch(each.blocks, blocks, function))]
        return None if function.parameter(name) >= 0 else given

    # -- writes -------------------------------------------------------------------------------------------------------

    def _writes(self, function: Function) -> Iterator[Remark]:
        for write in function.writes:
            if self._holds(function, write.start):
                continue
            target = _bare(write.target)
            name, through = _root(target)
            words = " ".join(text_of(target).split())
            if self._last_field(target) in self._safe_fields:
                continue
            line = line_of_node(write.target)
            variable = self._variable(function, name)
            if variable is not None:
                yield from self._shared_write(function, write, variable, words, line)
            elif name or through:
                yield from self._field_write(function, write, name, words, line, through=through)

    def _variable(self, function: Function, name: str) -> Variable | None:
        """Return the variable that all threads share and that a name stands for; None for another."""
        local = function.locals.get(name)
        if local is not None:
            return local if local.static else None
        if not name or function.parameter(name) >= 0 or name in self._fields.get(function.owner, {}):
            return None
        return self._shared.get(name)

    def _shared_write(self, function: Function, write: Write, variable: Variable, words: str,
                      line: int) -> Iterator[Remark]:
        if _SAFE_TYPES.search(variable.type) or function.name in self._imports_only or function.module_body:
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
        own = self._fields.get(function.owner, {})
        member = name in own and name not in function.locals and function.parameter(name) < 0
        if function.name in self._exclusive or function.module_body or self._is_private_write(
                function, write, name, member=member, through=through):
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
            own = self._fields.get(function.owner, {})
            return self._is_member_private(function) or (member and _SAFE_TYPES.search(own[name]) is not None)
        place = function.parameter(name)
        if not through:   # of C++: a parameter by reference; others are the function's own
            written = _bare(write.target).type in {"field_expression", "subscript_expression"} or write.method
            given = function.parameters[place] if place >= 0 else None
            return (given is None or not (given.reference and written) or "const " in given.type
                    or (function.name, place) in self._private_parameters)
        return bool(name) and (self._is_private_name(function, name, write.start, write.blocks) or (
            self._is_local_value(function, name) and "->" not in text_of(_bare(write.target))))

    def _is_member_private(self, function: Function) -> bool:
        """Return True if nothing known calls a method on an object that threads may share."""
        if function.owner in self._bound:
            return False
        calls = self._callers.get(function.name, [])
        return not calls or all(
            self._holds(by, call.start) or by.name in self._exclusive or by.owner == function.owner
            or self._on_private(by, call) for by, call in calls)

    def _on_private(self, function: Function, call: Call) -> bool:
        called = call.node.child_by_field_name("function")
        if called.type != "field_expression":
            return False
        name, through = _root(called.child_by_field_name("argument"))
        return (not through and self._is_local_value(function, name)) or self._is_private_name(
            function, name, call.start, call.blocks)

    def _is_state(self, function: Function, name: str) -> bool:
        return any(_STATE.match((_FUNCTION_NAME.findall(text_of(_bare(each.value)).partition("(")[0]) or [""])[-1])
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
        if self._holds(function, call.start) or function.name in self._imports_only or function.module_body:
            return True
        if call.name in _BORROWS_NO_CONTAINER or not call.arguments:
            return False
        container = _bare(call.arguments[0])
        name = text_of(container)
        if name in _KEYWORDS and function.parameter(name) >= 0:
            return True   # the interpreter makes it for this call
        if concern == "no lock" and call.name == "PyList_SET_ITEM" and not self._is_field(container):
            return self._is_private(function, container, call.start, call.blocks) or function.parameter(name) < 0
        return self._is_private(function, container, call.start, call.blocks)

    @staticmethod
    def _is_field(node: Node) -> bool:
        return bool(node.type == "field_expression")

    def _outlives_lock(self, function: Function, call: Call) -> bool:
        """Return True if a borrowed reference taken under a lock is used after its release, without one of its own."""
        ends = [end for start, end in self._held[id(function)] if start <= call.start < end]
        parent = call.node.parent
        while parent is not None and parent.type in {"cast_expression", "parenthesized_expression"}:
            parent = parent.parent
        named = None
        if parent is not None and parent.type in {"assignment_expression", "init_declarator"}:
            named = parent.child_by_field_name("left") or parent.child_by_field_name("declarator")
        words = _FUNCTION_NAME.findall(text_of(named)) if named is not None else []
        if not ends or not words or "." in text_of(named) or "->" in text_of(named):
            return False
        name, end = words[-1], min(ends)
        kept = any(call.start < each.start < end and re.search(r"INCREF|NewRef", each.name) and any(
            name in _FUNCTION_NAME.findall(text_of(argument)) for argument in each.arguments)
            for each in function.calls)
        again = [each.start for each in function.assignments.get(name, []) if each.start > end]
        later = [place for place in function.names.get(name, []) if place > end and (not again or place < min(again))]
        return not kept and bool(later)

    def _loops(self, function: Function) -> Iterator[Remark]:
        """Yield the range loops of C++ over containers of Python that others may change meanwhile."""
        for loop, container in function.loops:
            if container is None or self._holds(function, loop.start_byte) or function.module_body:
                continue
            name = text_of(_bare(container))
            place = function.parameter(name)
            variable = function.parameters[place] if place >= 0 else self._variable(function, name)
            words = variable.type if variable is not None else self._fields.get(function.owner, {}).get(name, "")
            if _PYTHON_CONTAINERS.search(words) and name not in _KEYWORDS and (
                    function.name, place) not in self._private_parameters:
                yield _remark(line_of_node(loop), "no lock", f"for (... : {name})", ITERATE)


def _remark(line: int, concern: Concern, what: str, instead: str) -> Remark:
    return Remark(line=line, concern=concern, what=what, instead=instead)


def _other_branch(blocks: tuple[int, ...], at: tuple[int, ...], function: Function) -> bool:
    """Return True if an assignment in `blocks` lies in a block that has ended, and leaves the function at its end."""
    inner = blocks[len([1 for one, other in zip(blocks, at, strict=False) if one == other]):]
    if not inner:
        return False
    start, end = inner[0], function.block_ends.get(inner[0], inner[0])
    return any(start <= place < end for place, _, _ in function.returns)


def _bare(node: Node) -> Node:
    """Return an expression without parentheses and casts."""
    while node is not None:
        if node.type == "parenthesized_expression" and node.named_children:
            node = node.named_children[0]
        elif node.type == "cast_expression":
            node = node.child_by_field_name("value")
        elif node.type == "call_expression" and re.match(
                r"(?:reinterpret|static|const|dynamic)_cast|Py_NewRef$|Py_XNewRef$|_?PyObject_CAST$",
                text_of(node.child_by_field_name("function"))):
            arguments = node.child_by_field_name("arguments").named_children
            if not arguments:
                return node
            node = arguments[0]
        else:
            return node
    return node


def _root(node: Node) -> tuple[str, bool]:
    """Return the variable at the root of an expression, "" for a call, and whether a pointer is followed to a field."""
    through = False
    while True:
        node = _bare(node)
        match node.type:
            case "field_expression":
                through = through or any(child.type == "->" for child in node.children)
                node = node.child_by_field_name("argument")
            case "subscript_expression":
                node = node.child_by_field_name("argument") or node.named_children[0]
            case "pointer_expression":
                if text_of(node).startswith("&"):
                    return _root(node.child_by_field_name("argument"))[0], through
                inner = node.child_by_field_name("argument")
                parent = node.parent
                while parent is not None and parent.type == "parenthesized_expression":
                    parent = parent.parent
                through = through or (parent is not None and parent.type == "field_expression")
                node = inner
            case "identifier" | "this" | "field_identifier":
                return text_of(node), through
            case "qualified_identifier":
                words = _FUNCTION_NAME.findall(text_of(node))
                return words[-1], through
            case _:
                return "", through


def _is_number(node: Node) -> bool:
    node = _bare(node)
    return (node.type in {"null", "number_literal", "false", "true", "nullptr"}
            or _NUMBER.match(text_of(node)) is not None)


def _last_word(name: str) -> str:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return words[-1].lower() if words else ""
