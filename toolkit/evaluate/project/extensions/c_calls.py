"""Know who calls whom in C and C++, where locks are held, and what no other thread has.

Private is what no other thread has: an object that a function has just made, local variables, what a constructor fills,
whatever runs while the module is imported, and parameters that every caller gives something private.

Source of the locks: "C API Extension Support for Free Threading" of CPython's documentation: critical sections.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.c_expressions import (
    WORDS,
    bare,
    is_number,
    is_other_branch,
    last_word,
    never_goes_on,
    pointer_of,
    root,
    stored_in,
    without_ranges,
)
from gilscope.toolkit.evaluate.project.extensions.c_tree import text_of
from gilscope.toolkit.evaluate.project.extensions.c_types import local_types
from gilscope.toolkit.evaluate.project.extensions.cython_functions import functions_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gilscope.toolkit.evaluate.project.extensions.c_macros import MacroTable
    from gilscope.toolkit.evaluate.project.extensions.c_tree import Call, CVariable, Function, Unit

    Node = Any   # tree_sitter.Node

_ACQUIRES = re.compile(r"(?:Py_BEGIN_CRITICAL_SECTION\w*|PyMutex_Lock\w*|pthread_(?:mutex|spin)_lock|"
                       r"pthread_rwlock_wrlock|PyThread_acquire_lock\w*|mtx_lock|EnterCriticalSection|"
                       r"AcquireSRWLockExclusive|PyCriticalSection\w*_Begin\w*)$")
_RELEASES = re.compile(r"(?:Py_END_CRITICAL_SECTION\w*|PyMutex_Unlock\w*|pthread_(?:mutex|spin|rwlock)_unlock|"
                       r"PyThread_release_lock|mtx_unlock|LeaveCriticalSection|ReleaseSRWLockExclusive|"
                       r"PyCriticalSection\w*_End\w*)$")
# Types that need no guard: constants, thread-local storage, locks and atomics.
SAFE_TYPES = re.compile(
    r"\b(?:constexpr|constinit|_Thread_local|thread_local|__thread|_Atomic\w*|atomic\w*|PyMutex|mutex|shared_mutex|"
    r"recursive_mutex|once_flag|pthread_\w+_t|Py_tss_t|_PyOnceFlag|ft_mutex|gil_safe_call_once_and_store|"
    r"PyThread_type_lock)\b")
# Functions that run while no other thread has the object; the collector calls `clear` with all threads stopped.
_EXCLUSIVE = {"init", "new", "alloc", "create", "make", "dealloc", "free", "destroy", "finalize", "fini", "traverse",
              "exec"}
_ENDING = {"dealloc", "free", "del", "delete", "destroy", "finalize", "fini", "clear"}
_OBJECT_SLOTS = re.compile(r"\b(?:Py_)?(?:tp_(?:init|new|alloc|dealloc|free|finalize|del|traverse|clear)|"
                           r"m_(?:clear|traverse|free))\s*[,=]\s*(?:\([^()]*\)\s*)*(?:void_cast\()?&?\s*(\w+)"
                           r"|\(\s*(?:initproc|newfunc|destructor|traverseproc|inquiry|freefunc)\s*\)\s*(\w+)")
# A type's table by position, after its head; a head without "Var" is followed by the size.
_TYPE_TABLE = re.compile(r"\bPyTypeObject\s+\w+\s*=\s*\{\s*Py(Var|)Object_HEAD_INIT\s*\([^;{}]*?\)\s*,?\s*"
                         r"(?=\"|[\w&]+\s*,)([^;{}]*)\}")
_PLACES = {3: "dealloc", 20: "traverse", 21: "clear", 34: "init", 35: "alloc", 36: "new", 37: "free"}
_CLEAR_SLOTS = re.compile(r"\b(?:Py_)?tp_clear\s*[,=]\s*(?:\([^()]*\)\s*)*&?\s*(\w+)|\(\s*inquiry\s*\)\s*(\w+)")
_EXEC_SLOTS = re.compile(r"\bPy_mod_exec\s*,\s*(?:\([^()]*\)\s*)*(?:\w+\s*<[^>]*>\s*\()?&?\s*(\w+)")
_ENTRY = re.compile(r"(?:PyInit_|PyModExport_|init)\w+$")
_MADE = re.compile(r"\w*(?:new|alloc|create|clone|copy|make|build|dup|from)\w*$", re.IGNORECASE)
_KEPT = re.compile(r"get|find|lookup|cached|intern|shared|_or_|state", re.IGNORECASE)
_NEW_CONTAINERS = re.compile(r"Py(?:List|Dict|Set|Tuple)_New$|Py_BuildValue$|PyDict_Copy$|PySequence_(?:List|Tuple)$|"
                             r"PyMapping_(?:Items|Keys|Values)$|PyDict_(?:Items|Keys|Values)$|PyList_(?:AsTuple|GetSlice)$|"
                             r"PyObject_Dir$|PyObject_CallNoArgs$")
_CALLS = re.compile(r"PyObject_(?:Call(?:Object|NoArgs|OneArg|Function(?:ObjArgs)?)?|Vectorcall(?:Dict)?)$")
_TYPE_NAME = re.compile(r"(?:type|TYPE|Type)(?:_?obj(?:ect)?)?$")
_FILLED = re.compile(r"\b(?:Py_buffer|Py_complex|PyThreadState|PyConfig)\b")
_CAST = re.compile(r"\(\s*\(\s*(?:const\s+|struct\s+)*\w+\s*\*+\s*\)\s*(\w+)\s*\)")
# Calls that put a value into a container, and that take one from it: the place of the value.
_PUTS = {"PyDict_SetItem": 2, "PyDict_SetItemString": 2, "PyList_Append": 1, "PyList_Insert": 2, "PyList_SetItem": 2,
         "PyList_SET_ITEM": 2, "PyTuple_SetItem": 2, "PyTuple_SET_ITEM": 2}
_TAKES = {"PyDict_Next": 3, "PyDict_GetItemRef": 2, "PyDict_GetItemStringRef": 2, "PyDict_Pop": 2}   # its address
_TAKES_RESULT = re.compile(r"Py(?:Dict|List|Tuple)_(?:GetItem(?!.*Ref$)\w*|GET_ITEM)$|PyList_GetItemRef$")
_EMPTY = re.compile(r"Py(?:Dict|List|Tuple)_New$")
_ONLY_LOOKS = re.compile(r"Py_(?:X?DECREF|SIZE|SET_SIZE)$|Py(?:Dict|List|Tuple)_(?:Size|GET_SIZE|Contains\w*|Check\w*"
                         r"|DelItem\w*|Clear|Sort|Reverse)$")
KEYWORDS = {"kwargs", "kwds", "kw", "keywds", "keywords"}
_MODULE_DEFINITION = re.compile(r"\bPyModuleDef\s+\w+\s*=\s*\{([^;]*)\}")
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc")
_CLASS = re.compile(r"\bclass_\s*<\s*(?:\w+\s*::\s*)*(\w+)")


class CallGraph:
    """All functions of a project's C and C++ at once: what one file defines another may call."""

    def __init__(self, units: Sequence[Unit], macros: MacroTable, elsewhere: str = "") -> None:
        """Read the functions of all units.

        Args:
            units: The project's sources.
            macros: What all of them define.
            elsewhere: Code in another language that may call them.
        """
        self._units = units
        self._table = macros
        self._elsewhere = elsewhere
        self.functions = [function for unit in units for function in unit.functions]
        self.shared: dict[str, CVariable] = {}
        for unit in units:
            for name, variable in unit.shared.items():
                if name not in self.shared or not variable.type.startswith("extern"):
                    self.shared[name] = variable
        self._macros: dict[str, str] = {}
        for unit in units:
            for name, (_, body) in unit.macros.items():
                self._macros[name] = f"{self._macros.get(name, '')} {body}"
        self.fields: dict[str, dict[str, str]] = {}
        for unit in units:
            for owner, fields in unit.fields.items():
                self.fields.setdefault(owner, {}).update(fields)
        self.safe_fields = {name for fields in self.fields.values() for name, words in fields.items()
                             if SAFE_TYPES.search(words)}
        # Fixed points that ask for themselves: None until begun, then the guess so far, and at last the answer.
        self._private: set[tuple[str, int]] | None = None
        self._making: set[str] | None = None
        self._acquiring, self._releasing = self._locking_names()
        self.held = {id(function): self._held_ranges(function) for function in self.functions}

    @cached_property
    def local_types(self) -> frozenset[str]:
        """Return the structures that exist only as local variables; Cython may keep one in an object."""
        return local_types(self._units) - {*WORDS.findall(self._elsewhere)}

    @cached_property
    def unused(self) -> set[str]:
        """Return the functions of headers that are used only by each other, or not at all."""
        found = {name for name, functions in self._named.items() if name not in self._referenced and all(
            each.file.endswith(_HEADERS) and not each.owner for each in functions)}
        while used := {name for name in found
                       if any(by.name not in found for by, _ in self._all_callers.get(name, ()))}:
            found -= used
        return found

    # -- locks --------------------------------------------------------------------------------------------------------

    def _locking_names(self) -> tuple[set[str], set[str]]:
        """Return the project's macros and functions that acquire, or release, a lock for their caller."""
        acquiring: set[str] = set()
        releasing: set[str] = set()
        texts = {name: {*WORDS.findall(body)} for name, body in self._macros.items()}
        # C++: a macro that calls lock() of a static lock.
        locked = {name for name, body in self._macros.items() if re.search(r"[.>]\s*(?:lock|acquire)\s*\(", body)}
        unlocked = {name for name, body in self._macros.items() if re.search(r"[.>]\s*(?:unlock|release)\s*\(", body)}
        acquiring |= locked - unlocked
        releasing |= unlocked - locked
        called = {function.name: {call.name for call in function.calls} for function in self.functions
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
        gaps: list[tuple[int, int]] = []   # after a release in an inner block, up to where that leaves
        held: list[Call] = []
        for call in sorted(function.calls, key=lambda each: each.start):
            method = call.node.child_by_field_name("function").type == "field_expression"
            if _ACQUIRES.match(call.name) or call.name in self._acquiring or (
                    method and call.name in {"lock", "acquire"}):
                held.append(call)
            elif held and (_RELEASES.match(call.name) or call.name in self._releasing or (
                    method and call.name in {"unlock", "release"})):
                if self._leaves_early(function, held[-1], call):
                    gaps.append((call.node.end_byte, function.block_ends[call.blocks[-1]]))
                else:
                    ranges.append((held.pop().start, call.start))
        # A block that never goes on below it keeps no lock for what stands there.
        ranges += [(call.start, self._end_of_block(function, call)) for call in held]
        return [part for each in ranges for part in without_ranges(each, gaps)]

    @staticmethod
    def _end_of_block(function: Function, acquire: Call) -> int:
        """Return where a lock is given up that no statement releases for good: its block's end if that leaves."""
        block = function.blocks.get(acquire.blocks[-1]) if acquire.blocks else None
        return int(block.end_byte if block is not None and never_goes_on(block) else function.node.end_byte)

    @staticmethod
    def _leaves_early(function: Function, acquire: Call, release: Call) -> bool:
        """Return True for a release before a `return` or `goto` in an inner block: the rest still holds the lock."""
        if len(release.blocks) <= len(acquire.blocks):
            return False
        end = function.block_ends.get(release.blocks[-1], release.start)
        return any(release.start < place < end for place in function.leaves)

    def holds(self, function: Function, place: int) -> bool:
        """Return True if a function holds a lock at an offset."""
        return any(start <= place < end for start, end in self.held[id(function)])

    # -- who calls whom -----------------------------------------------------------------------------------------------

    @cached_property
    def _named(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for function in self.functions:
            if function.name:
                found.setdefault(function.name, []).append(function)
        return found

    @cached_property
    def callers(self) -> dict[str, list[tuple[Function, Call]]]:
        """The calls of each of the project's functions, and who makes them; not those of unused functions."""
        return {name: used for name, calls in self._all_callers.items()
                if (used := [(by, call) for by, call in calls if by.name not in self.unused])}

    @cached_property
    def _all_callers(self) -> dict[str, list[tuple[Function, Call]]]:
        found: dict[str, list[tuple[Function, Call]]] = {}
        for function in self.functions:
            for call in function.calls:
                if call.name in self._named:
                    found.setdefault(call.name, []).append((function, call))
        return found

    @cached_property
    def _outside(self) -> str:
        return " ".join([*(unit.outside for unit in self._units)])

    @cached_property
    def _referenced(self) -> set[str]:
        """Return the functions that tables, macros, Cython, or others' arguments name: their callers are not known."""
        found = {*self._in_tables}
        for function in self.functions:
            called = {call.node.child_by_field_name("function").start_byte for call in function.calls}
            for name in function.names.keys() & self._named.keys() - {function.name}:
                if name in function.locals or function.parameter(name) >= 0:
                    continue
                ends = {call.node.child_by_field_name("function").end_byte - len(name) for call in function.calls}
                if any(place not in called and place not in ends for place in function.names[name]):
                    found.add(name)
        return found

    def is_known(self, function: Function, name: str) -> bool:
        """Return True for a function or macro of the project, a local variable or a parameter."""
        return (name in self._named or name in self._macros or name in function.locals or name in function.macros
                or function.parameter(name) >= 0)

    def gets_constant(self, name: str, place: int) -> bool:
        """Return True if a declaration outside of functions says that a parameter points to something constant."""
        parameters = self._declared.get(name, ())
        return place < len(parameters) and re.search(r"\bconst\b[^*]*\*[^*]*$", parameters[place]) is not None

    @cached_property
    def _declared(self) -> dict[str, list[str]]:
        """Return the parameters of the functions that are declared outside of functions, by their first declaration."""
        found: dict[str, list[str]] = {}
        for match in re.finditer(r"\b(\w+)\s*\(([^()]*)\)\s*;", self._outside):
            found.setdefault(match[1], match[2].split(","))
        return found

    def is_given_by_interpreter(self, function: Function, name: str, seen: tuple[Function, ...] = ()) -> bool:
        """Return True for a parameter with the keywords of a call, a dictionary that the interpreter makes for it.

        A function that others in the project call gets one that is as private as theirs.
        """
        place = function.parameter(name)
        return any(each is function for each in seen) or (place >= 0 and all(
            place < len(call.arguments) and self._is_own_dictionary(by, call, call.arguments[place], (*seen, function))
            for by, call in self.callers.get(function.name, ())))

    def _is_own_dictionary(self, function: Function, call: Call, given: Node, seen: tuple[Function, ...]) -> bool:
        name = text_of(bare(given))
        return is_number(given) or self.is_private(function, given, call.start, call.blocks) or (
            name in KEYWORDS and self.is_given_by_interpreter(function, name, seen))

    @cached_property
    def _in_tables(self) -> set[str]:
        """Return the functions that tables, macros or Cython name."""
        bodies = " ".join([self._elsewhere, *(self._unlocked(body) for body in self._macros.values())])
        tables = re.sub(r"\b\w+\s*\([^(){}]*\)\s*;", " ", self._outside)   # declarations of functions
        return {*WORDS.findall(tables), *WORDS.findall(bodies)} & self._named.keys()

    @cached_property
    def _contexts(self) -> dict[tuple[str, int], list[tuple[Function, Call, Node]]]:
        """Return the values that callbacks get as their context, a `void *`, from the calls that pass on both.

        The key is the callback's name with the place of that parameter.  Only of functions that nothing but such calls
        names: `each_node(root, save_node, &buffer)`, where `each_node` is the project's and has one `void *`, as the
        callback has.
        """
        found: dict[tuple[str, int], list[tuple[Function, Call, Node]]] = {}
        known: dict[str, int] = {}     # function -> places at which such a call names it
        for by in self.functions:
            for call in by.calls:
                passed = [bare(each) for each in call.arguments]
                for name in (text_of(each) for each in passed if each is not None and each.type == "identifier"):
                    given, got = self._context_place(call.name), self._context_place(name)
                    if name in self._referenced and -1 not in (given, got) and given < len(call.arguments):
                        found.setdefault((name, got), []).append((by, call, call.arguments[given]))
                        known[name] = known.get(name, 0) + 1
        named = {name: sum(len(function.names.get(name, ())) for function in self.functions
                           if name not in function.locals) for name in known}
        direct = {name: len(self._all_callers.get(name, ())) for name in known}
        return {place: values for place, values in found.items()
                if place[0] not in self._in_tables and named[place[0]] == known[place[0]] + direct[place[0]]}

    def _context_place(self, name: str) -> int:
        """Return the place of a function's only parameter that is a `void *`, -1 if it has none or several."""
        places = {tuple(place for place, each in enumerate(function.parameters)
                        if each.pointer and each.type.replace("const", "").strip() == "void")
                  for function in self._named.get(name, ())}
        only = places.pop() if len(places) == 1 else ()
        return only[0] if len(only) == 1 else -1

    def _unlocked(self, body: str) -> str:
        """Return the effects of a macro outside of locks that it takes itself."""
        taken, parts = False, []
        for word in re.findall(r"\w+|[^\w]+", body):
            taken = (taken or _ACQUIRES.match(word) is not None or word in self._acquiring) and not (
                _RELEASES.match(word) or word in self._releasing)
            parts.append("" if taken else word)
        return "".join(parts)

    @cached_property
    def _locked_in_macros(self) -> set[str]:
        """Return the functions that macros call with a lock held."""
        return ({*WORDS.findall(" ".join(self._macros.values()))} & self._named.keys()) - self._referenced

    @cached_property
    def bound(self) -> set[str]:
        """Return the classes that a binding generator makes known to Python."""
        found: set[str] = set()
        for function in self.functions:
            if b"class_" in function.node.text:
                found |= set(_CLASS.findall(text_of(function.node)))
        return found

    @cached_property
    def _locked_by_binding(self) -> set[str]:
        """Return the methods that nanobind locks: `.def(..., &Class::method, nb::lock_self())`."""
        found: set[str] = set()
        for function in self.functions:
            for call in function.calls:
                if call.name.startswith("def") and any("lock_self" in text_of(each) for each in call.arguments):
                    found |= {match[1] for each in call.arguments
                              for match in [re.match(r"&\s*(?:\w+\s*::\s*)*(\w+)$", text_of(each))] if match}
        return found

    @cached_property
    def imports_only(self) -> set[str]:
        """Return the functions that run only while the module is imported, by one thread."""
        roots = {match[1] for match in _EXEC_SLOTS.finditer(self._outside)} & self._named.keys()
        roots |= {name for name in self._named if _ENTRY.match(name) and (
            name.startswith(("PyInit_", "PyModExport_")) or name in self._init_functions)}
        roots |= {function.name for function in self.functions if function.module_body}
        # m_free, m_clear and m_traverse run when the module goes.
        roots |= {name for match in _MODULE_DEFINITION.finditer(self._outside)
                  for name in WORDS.findall(match[1])} & self._named.keys()
        return self._only_called(roots)

    @cached_property
    def _init_functions(self) -> set[str]:
        return {name for name, functions in self._named.items()
                for function in functions if "PyMODINIT_FUNC" in function.head}

    @cached_property
    def exclusive(self) -> set[str]:
        """Return the functions in which no other thread has the object."""
        slots = " ".join([self._outside, *self._macros.values()])
        by_place = dict(self._slots_by_place())
        in_slots = {*_names(_OBJECT_SLOTS, slots), *by_place}
        tables = set(WORDS.findall(" ".join(re.findall(r'\{\s*""\s*,[^{}]*\}', slots))))
        roots = {name for name, functions in self._named.items() if name not in tables and (
            name in in_slots or (last_word(name) in _EXCLUSIVE and name not in self._ended_by_cython)
            or any(each.owner and name.lstrip("~") == each.owner for each in functions))}
        roots |= {name for name in self._named.keys() - tables if last_word(name) == "clear"
                  and name not in self.callers and name not in self._ended_by_cython}
        roots |= self.imports_only | self._locked_by_binding
        # What tp_clear names, others may call for an object that threads share: a method that clears it.
        clearing = {*_names(_CLEAR_SLOTS, slots), *(name for name, slot in by_place.items() if slot == "clear")}
        found = self._only_called(roots)
        while shared := {name for name in clearing & roots if not all(
                self._is_exclusive_call(by, call, found) for by, call in self.callers.get(name, ()))}:
            roots -= shared
            found = self._only_called(roots)
        return found

    def _is_exclusive_call(self, function: Function, call: Call, exclusive: Collection[str]) -> bool:
        """Return True if no other thread has the object, the first argument of a call."""
        return function.name in exclusive or self.holds(function, call.start) or bool(
            call.arguments and self.is_private(function, call.arguments[0], call.start, call.blocks, parameters=False))

    def _slots_by_place(self) -> Iterator[tuple[str, str]]:
        """Yield function and slot for tables of types that name no slots, but give them in their order."""
        for match in _TYPE_TABLE.finditer(self._outside):
            for place, value in enumerate(match[2].split(","), 0 if match[1] else -1):
                if place in _PLACES and (words := WORDS.findall(value)):
                    yield words[-1], _PLACES[place]

    @cached_property
    def _ended_by_cython(self) -> set[str]:
        """Return the functions that free or clear something for code of Cython that others may run meanwhile."""
        code = " ".join(text for each in functions_of(self._elsewhere, frozenset()) for _, text, _ in each.lines)
        found = {name for name in WORDS.findall(code) if name in self._named and last_word(name) in _ENDING}
        while more := {call.name for name in found for by in self._named[name] for call in by.calls
                       if call.name in self._named and last_word(call.name) in _ENDING} - found:
            found |= more
        return found

    def _only_called(self, roots: Collection[str]) -> set[str]:
        """Return `roots`, and the functions that are only called by them or with a lock held."""
        within = {*self.callers, *self._locked_in_macros} - self._referenced - {*roots}
        while unsafe := {name for name in within if not all(
                self.holds(by, call.start) or by.name in roots or by.name in within
                for by, call in self.callers.get(name, ()))}:
            within -= unsafe
        return {*roots} | within

    # -- what is private ----------------------------------------------------------------------------------------------

    @property
    def private_parameters(self) -> set[tuple[str, int]]:
        """Return the parameters for which every caller gives something private, or holds a lock."""
        if self._private is not None:
            return self._private
        contexts = self._contexts
        found = {(name, place) for name, functions in self._named.items()
                 if name in self.callers and name not in self._referenced
                 for place in range(max(len(each.parameters) for each in functions))} | {*contexts}
        self._private = found   # made smaller
        while unsafe := {(name, place) for name, place in found if not all(
                self.holds(by, call.start) or by.name in self.exclusive
                or (place < len(call.arguments) and (is_number(call.arguments[place]) or self.is_private(
                    by, call.arguments[place], call.start, call.blocks)))
                for by, call in self.callers.get(name, ())) or not all(
                is_number(value) or self.is_private(by, value, call.start, call.blocks)
                for by, call, value in contexts.get((name, place), ()))}:
            found -= unsafe
        return found

    @property
    def making(self) -> set[str]:
        """Return the functions that return something new."""
        if self._making is not None:
            return self._making
        found = self._making = set()   # made larger
        for _ in range(3):
            for name, functions in self._named.items():
                for function in functions:
                    given = [each for each in function.returns if not is_number(each[2])]
                    if given and all(self.is_private(function, value, start, blocks, parameters=False)
                                     for start, blocks, value in given):
                        found.add(name)
        return found

    @cached_property
    def _keeping(self) -> set[tuple[str, int]]:
        """Return the parameters that a function leaves in something that outlives the call."""
        found: set[tuple[str, int]] = set()
        for function in self.functions:
            for name, _ in stored_in(function):
                found.add((function.name, function.parameter(name)))
        for _ in range(3):
            found |= {(by.name, by.parameter(text_of(given))) for by in self.functions for call in by.calls
                      for place, each in enumerate(call.arguments) if (call.name, place) in found
                      and (given := bare(each)).type == "identifier"}
        return {(name, place) for name, place in found if name and place >= 0}

    def is_given_away(self, function: Function, name: str, start: int, blocks: tuple[int, ...]) -> bool:
        """Return True if what a variable points to was stored, before a place, where other threads may find it."""
        again = max((each.start for each in function.assignments.get(name, ()) if each.start < start), default=-1)
        for value, write in stored_in(function):
            if value == name and again < write.start < start and write.blocks == blocks[:len(write.blocks)]:
                variable, through = root(write.target)
                if through and not self.is_private_name(function, variable, write.start, write.blocks):
                    return True
        for call in function.calls:
            if again < call.start < start and call.blocks == blocks[:len(call.blocks)] and any(
                    (call.name, place) in self._keeping and text_of(bare(each)) == name
                    for place, each in enumerate(call.arguments)) and not self.holds(function, call.start):
                first = bare(call.arguments[0])
                if text_of(first) != name and not is_number(first) and not self.is_private(
                        function, first, call.start, call.blocks):
                    return True
        return False

    def is_private(  # noqa: PLR0911 - one for each kind of expression
            self, function: Function, value: Node, start: int, blocks: tuple[int, ...], *,
                    parameters: bool = True, seen: frozenset[str] = frozenset()) -> bool:
        """Return True if no other thread has a value: it was made here, or is a local variable's address."""
        value = bare(value)
        match value.type:
            case "identifier":
                name = text_of(value)
                own = function.locals.get(name)
                return (own is not None and own.array and not own.pointer and not own.static) or self.is_private_name(
                    function, name, start, blocks, parameters=parameters, seen=seen)
            case "call_expression":
                called = value.child_by_field_name("function")
                given = value.child_by_field_name("arguments").named_children
                if parameters and given and _TAKES_RESULT.match(text_of(called)):
                    return self._holds_private(function, given[0], start, blocks, seen)
                words = WORDS.findall(text_of(called).split("<")[0] if called is not None else "")
                name = words[-1] if words else ""
                return (name in self.making or self._makes_object(value) or name == "tp_alloc"
                        or _NEW_CONTAINERS.match(name) is not None
                        or (_MADE.match(name) is not None and not _KEPT.search(name)))
            case "new_expression" | "initializer_list" | "compound_literal_expression" | "string_literal":
                return True
            case "assignment_expression":
                right = value.child_by_field_name("right")
                return self.is_private(function, right, start, blocks, parameters=parameters, seen=seen)
            case "conditional_expression":
                return all(is_number(each) or self.is_private(function, each, start, blocks, parameters=parameters,
                                                              seen=seen) for each in self._branches(value))
            case "binary_expression" if text_of(value.child_by_field_name("operator")) in {"+", "-"}:   # of pointers
                return self.is_private(function, value.child_by_field_name("left"), start, blocks,
                                       parameters=parameters, seen=seen)
            case "pointer_expression" if text_of(value).startswith("&"):
                inner = bare(value.child_by_field_name("argument"))
                name, through = root(inner)
                return (not through and self.is_local_value(function, name)) or (
                    bool(name) and self.is_private_name(function, name, start, blocks, parameters=parameters,
                                                         seen=seen))
            case "field_expression" | "subscript_expression":
                # What a new object points to is as new as itself, as far as one function shows.
                name, through = root(value)
                return (not through and self.is_local_value(function, name)) or (bool(name) and self.is_private_name(
                    function, name, start, blocks, parameters=parameters, seen=seen))
        return False

    def _branches(self, conditional: Node) -> list[Node]:
        """Return the values that `a ? b : c` may have: one if its condition is a constant, as in an expanded macro.

        `a ?: c` has no value of its own between.
        """
        condition = conditional.child_by_field_name("condition")
        names = {True: ("consequence",), False: ("alternative",), None: ("consequence", "alternative")}
        found = [conditional.child_by_field_name(each) for each in names[self._table.constant(text_of(condition))]]
        return [condition if each is None else each for each in found]

    def _makes_object(self, call: Node) -> bool:
        """Return True for a call of a type by PyObject_CallObject or its like."""
        given = call.child_by_field_name("arguments").named_children
        if not given or not _CALLS.match(text_of(call.child_by_field_name("function"))):
            return False
        words = WORDS.findall(text_of(bare(given[0])))
        variable = self.shared.get(words[-1]) if words else None
        return (variable is not None and "PyTypeObject" in variable.type) or bool(
            words and _TYPE_NAME.search(words[-1]))

    def is_local_value(self, function: Function, name: str) -> bool:
        """Return True for a local variable, or a parameter given by value, that is no pointer or reference."""
        variable = function.locals.get(name) or next((each for each in function.parameters if each.name == name), None)
        return variable is not None and not (variable.static or variable.pointer or variable.reference or (
            variable.array and name not in function.locals))

    def is_private_name(self, function: Function, name: str, start: int, blocks: tuple[int, ...], *,
                         parameters: bool = True, seen: frozenset[str] = frozenset()) -> bool:
        """Return True if no other thread has what a variable has, or points to, at an offset."""
        if not name or name in seen:
            return name in seen
        variable = function.locals.get(name)
        place = function.parameter(name)
        if variable is None and place < 0:
            meant = self._meant_by_macro(function, name)
            return bool(meant) and self.is_private_name(function, meant, start, blocks, parameters=parameters,
                                                        seen=seen | {name})
        if variable is not None and variable.static:
            return False
        if place >= 0 and _FILLED.search(function.parameters[place].type):
            return True
        values = self._values(function, name, start, blocks)
        if values is None:   # a parameter that may still have the caller's value
            return parameters and (function.name, place) in self.private_parameters
        values = [each for each in values if not is_number(each.value)]
        return (all(self.is_private(function, each.value, each.start, each.blocks, parameters=parameters,
                                    seen=seen | {name}) for each in values) if values else
                parameters and self._is_taken_from_private(function, name, start, blocks, seen | {name}))

    # -- what private containers hold ---------------------------------------------------------------------------------

    def _is_taken_from_private(self, function: Function, name: str, start: int, blocks: tuple[int, ...],
                               seen: frozenset[str]) -> bool:
        """Return True if the last call before a place that sets a variable by its address takes it from a container.

        And if the container holds only what no other thread has.
        """
        found = [call for call in function.calls if call.start < start and call.name in _TAKES
                 and len(call.arguments) > _TAKES[call.name]
                 and text_of(bare(call.arguments[_TAKES[call.name]])) == f"&{name}"]
        return bool(found) and self._holds_private(
            function, max(found, key=lambda each: each.start).arguments[0], start, blocks, seen)

    def _holds_private(self, function: Function, container: Node, start: int, blocks: tuple[int, ...],
                       seen: frozenset[str]) -> bool:
        """Return True if a container was made here, and only values that no other thread has are put into it."""
        name = text_of(bare(container))
        values = [each for each in function.assignments.get(name, ()) if not is_number(each.value)]
        return (name in function.locals and not function.locals[name].static and bool(values) and all(
            _EMPTY.match(text_of(bare(each.value).child_by_field_name("function") or each.value)) for each in values)
            and not self.is_given_away(function, name, start, blocks)
            and self._gets_only_private(function, name, seen, ()))

    def _gets_only_private(self, function: Function, name: str, seen: frozenset[str],
                           within: tuple[tuple[str, str], ...]) -> bool:
        """Return True if a function, and those that it gives a container to, put only private values into it."""
        if (function.name, name) in within:
            return True
        if name in _kept_names(function):
            return False
        return all(self._puts_only_private(function, call, place, seen, (*within, (function.name, name)))
                   for call in function.calls for place, each in enumerate(call.arguments)
                   if name in WORDS.findall(text_of(each)))

    def _puts_only_private(self, function: Function, call: Call, place: int, seen: frozenset[str],
                           within: tuple[tuple[str, str], ...]) -> bool:
        if call.name in _PUTS and not place and len(call.arguments) > _PUTS[call.name]:
            value = call.arguments[_PUTS[call.name]]
            return text_of(bare(value)) not in _kept_names(function) and self.is_private(
                function, value, call.start, call.blocks, seen=seen)
        if call.name in _TAKES or _TAKES_RESULT.match(call.name) or _ONLY_LOOKS.match(call.name):
            return True
        called = self._named.get(call.name, ())
        return bool(called) and all(place < len(each.parameters) and self._gets_only_private(
            each, each.parameters[place].name, seen, within) for each in called)

    def points_into_shared(self, function: Function, name: str, start: int, blocks: tuple[int, ...], *,
                           seen: frozenset[str] = frozenset()) -> bool:
        """Return True if a local variable is known to point into an object that other threads may have."""
        variable = function.locals.get(name)
        if variable is None or variable.static or not variable.pointer or name in seen:
            return False
        return any(self._is_inside_shared(function, each.value, each.start, each.blocks, seen | {name})
                   for each in self._values(function, name, start, blocks) or ())

    def _is_inside_shared(self, function: Function, value: Node, start: int, blocks: tuple[int, ...],
                          seen: frozenset[str]) -> bool:
        value = bare(value)
        while value.type == "binary_expression" or (
                value.type == "pointer_expression" and text_of(value).startswith("&")):
            value = bare(value.child_by_field_name("left") or value.child_by_field_name("argument"))
        if value.type == "conditional_expression":
            return any(self._is_inside_shared(function, each, start, blocks, seen) for each in self._branches(value))
        if value.type == "call_expression":   # where CPython keeps the instance's dictionary
            given = value.child_by_field_name("arguments").named_children
            return (text_of(value.child_by_field_name("function")) == "_PyObject_GetDictPtr" and len(given) == 1
                    and not self.is_private(function, given[0], start, blocks))
        name, through = root(value)
        if through:
            return not self.is_private_name(function, name, start, blocks)
        return self.points_into_shared(function, pointer_of(value), start, blocks, seen=seen)

    def _meant_by_macro(self, function: Function, name: str) -> str:
        """Return the variable in `#define self ((PickleData *)extra)`; "" if it is no such macro."""
        body = function.macros.get(name) or self._macros.get(name, "")
        meant = {match[1] for match in _CAST.finditer(body)}
        return meant.pop() if len(meant) == 1 and not _CAST.sub("", body).strip() else ""

    @staticmethod
    def _values(function: Function, name: str, start: int, blocks: tuple[int, ...]) -> list[Any] | None:
        """Return the assignments whose value a variable may have at a place; None if a caller's value is among them."""
        given = function.assignments.get(name, [])
        before = [each for each in given if each.value.end_byte <= start and blocks[:len(each.blocks)] == each.blocks]
        if before:
            last = max(before, key=lambda each: each.start)
            return [last, *(each for each in given if last.start < each.start < start and each is not last
                            and not is_other_branch(each.blocks, blocks, function))]
        return None if function.parameter(name) >= 0 else given


def _kept_names(function: Function) -> set[str]:
    """Return the variables whose value a function stores in a field, an array or another variable."""
    return {*(name for name, _ in stored_in(function)),
            *(text_of(bare(each.value)) for given in function.assignments.values() for each in given)}


def _names(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """Yield the names that a pattern finds by one of its groups."""
    yield from (name for match in pattern.finditer(text) for name in match.groups() if name)
