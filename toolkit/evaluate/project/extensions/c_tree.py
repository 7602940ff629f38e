"""Parse C and C++ into functions, variables that threads share, classes and macros: what the search looks at.

tree-sitter parses; it is imported only when a project has C sources, and comes with `gilscope[extensions]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.c_macros import ExpandedCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.project.extensions.c_macros import MacroTable

    Node = Any   # tree_sitter.Node: no part of the development environment's types

# A macro that stands alone in its line, without a semicolon: the parser would take what follows for a part of it.
_BARE_MACRO = re.compile(r"^([ \t]*(?!(?:if|for|while|switch|return)\b|Py(?:Var)?Object_HEAD_INIT\b)"
                         r"[A-Za-z_]\w*[ \t]*\((?:[^(){};\n]|\([^(){};\n]*\))*\)|[ \t]*\w*_HEAD"
                         r"|[ \t]*\w*(?:BEGIN|END|BLOCK)_(?:ALLOW_)?THREADS\w*)([ \t]*)$"
                         r"(?!\s*[{.\-+*/?:&|,)=;(]|\n\w+[ \t]*\([^(){};]*\)\s*\{)", re.MULTILINE)
_CLASSES = {"class_specifier", "struct_specifier", "union_specifier"}
# Outside of functions only where the parser took the head of one for something else.
_STATEMENTS = {"compound_statement", "if_statement", "for_statement", "while_statement", "do_statement",
               "switch_statement", "return_statement", "goto_statement", "labeled_statement"}
_BLOCK_OWNERS = {"if_statement", "else_clause", "for_statement", "while_statement", "do_statement",
                 "for_range_loop"}


@cache
def parser(language: str) -> Any | None:
    """Return the parser of "C" or "C++"; None if tree-sitter is not installed."""
    try:
        import tree_sitter  # noqa: PLC0415 - an extra: projects without C need none of it

        grammar = import_module({"C": "tree_sitter_c", "C++": "tree_sitter_cpp"}[language])
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


@dataclass(frozen=True, slots=True, kw_only=True)
class CVariable:
    """A variable or parameter by its declaration."""

    name: str
    type: str              # the text of the declaration before the name
    pointer: bool          # to what somebody else may have
    array: bool
    reference: bool        # of C++
    static: bool           # or `extern`: it is there as long as the program
    start: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A value that a local variable gets."""

    start: int
    blocks: tuple[int, ...]
    value: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call inside a function."""

    name: str              # the last part: "lock" of `mutex.lock()`
    node: Node
    arguments: tuple[Node, ...]
    start: int
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Something that a function writes to: the target of an assignment, `++`, `Py_CLEAR`, `push_back`."""

    target: Node
    start: int
    blocks: tuple[int, ...]
    tests: tuple[str, ...]   # the conditions around it
    method: str = ""         # of a container of C++ that changes it: "push_back"
    pointed: bool = False    # to what the target points to: the first argument of memcpy


@dataclass(slots=True, kw_only=True)
class Function:
    """A function, a method, or a lambda of C++."""

    name: str
    owner: str             # its class; "" for none
    head: str
    file: str
    node: Node
    parameters: list[CVariable]
    module_body: bool = False   # PYBIND11_MODULE and its like: runs while the module is imported
    locals: dict[str, CVariable] = field(default_factory=dict)
    assignments: dict[str, list[Assignment]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    guards: list[tuple[int, int]] = field(default_factory=list)   # ranges of C++ guards
    returns: list[tuple[int, tuple[int, ...], Node]] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)               # offsets of return, goto, break, continue
    block_ends: dict[int, int] = field(default_factory=dict)
    blocks: dict[int, Node] = field(default_factory=dict)         # those in braces, by their offset
    names: dict[str, list[int]] = field(default_factory=dict)     # offsets of each identifier
    loops: list[tuple[Node, Node]] = field(default_factory=list)  # range loops: the loop and what it goes through
    macros: dict[str, str] = field(default_factory=dict)          # defined between its braces: the bodies

    def parameter(self, name: str) -> int:
        """Return the index of a parameter; -1 if there is none of this name."""
        return next((place for place, each in enumerate(self.parameters) if each.name == name), -1)


@dataclass(slots=True, kw_only=True)
class Unit:
    """The functions, variables and types of one source file."""

    file: str
    functions: list[Function] = field(default_factory=list)
    shared: dict[str, CVariable] = field(default_factory=dict)     # variables outside of functions
    fields: dict[str, dict[str, str]] = field(default_factory=dict)   # of each class: name and type
    macros: dict[str, tuple[int, str]] = field(default_factory=dict)  # line and body
    lost: list[int] = field(default_factory=list)                 # first lines of statements outside of functions
    outside: str = ""                                             # text outside of functions: tables, initializers
    source: ExpandedCode = field(default_factory=lambda: ExpandedCode(code="", origins=()))


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return str(node.text.decode(errors="replace"))


def line_of_node(node: Node) -> int:
    """Return the line on which a node begins."""
    return int(node.start_point[0]) + 1


def read_unit(file: str, code: str, language: str, macros: MacroTable) -> Unit | None:
    """Return the contents of a source; None if there is no parser.

    Args:
        file: Its path relative to the project's root.
        code: Its text without comments and strings.
        language: "C" or "C++".
        macros: What all sources of the project define.
    """
    found = parser(language)
    if found is None:
        return None
    unit = Unit(file=file, source=macros.expand(file, code))
    tree = found.parse(_BARE_MACRO.sub(r"\1;", unit.source.code).encode())
    _Outside(unit, macros).read(tree.root_node, "")
    return unit


class _Outside:
    """Reads what stands outside of functions."""

    def __init__(self, unit: Unit, macros: MacroTable) -> None:
        self._unit = unit
        self._macros = macros
        self._outside: list[str] = []

    def read(self, root: Node, owner: str) -> None:
        self._level(root, owner)
        self._unit.outside = " ".join(self._outside)

    def _level(self, node: Node, owner: str) -> None:
        before = ""
        for child in node.named_children:
            if child.type in _STATEMENTS and not {node.type, before} & _STATEMENTS:
                self._unit.lost.append(line_of_node(child))
            before = child.type
            self._item(child, owner)

    def _item(self, node: Node, owner: str) -> None:
        kind = node.type
        if kind == "function_definition":
            self._function(node, owner)
        elif kind in {"declaration", "field_declaration"}:
            self._declaration(node, owner)
        elif kind in _CLASSES:
            self._class(node)
        elif kind in {"preproc_def", "preproc_function_def"}:
            self._macro(node)
        elif kind in {"type_definition", "template_declaration", "linkage_specification", "namespace_definition",
                      "declaration_list", "field_declaration_list", "ERROR", "expression_statement"} or kind.startswith(
                          "preproc_if") or kind in {"preproc_else", "preproc_elif", "preproc_ifdef"}:
            if kind in {"expression_statement", "ERROR"}:
                self._outside.append(text_of(node))
            self._level(node, owner)
        elif kind == "compound_statement":   # a function whose head the parser does not know
            self._level(node, owner)

    def _function(self, node: Node, owner: str) -> None:
        body = node.child_by_field_name("body")
        declarator = node.child_by_field_name("declarator")
        if body is None:
            return
        head = text_of(node)[:body.start_byte - node.start_byte]
        function = _find(declarator, "function_declarator") if declarator is not None else None
        name, parameters = "", []
        if function is not None:
            named = function.child_by_field_name("declarator")
            full = text_of(named) if named is not None else ""
            parts = re.findall(r"~?\w+", full)
            name = parts[-1] if parts else ""
            owner = parts[-2] if len(parts) > 1 and "::" in full else owner
            parameters = _parameters(function.child_by_field_name("parameters"))
        module_body = re.match(r"(?:PYBIND11|NB)_\w*(?:MODULE|PLUGIN)", name) is not None
        self._add(Function(name=name, owner=owner, head=head, file=self._unit.file, node=node, parameters=parameters,
                           module_body=module_body), body)

    def _add(self, function: Function, body: Node) -> None:
        self._unit.functions.append(function)
        for inner in _Inside(function, self._macros).read(body):
            self._add(*inner)

    def _declaration(self, node: Node, owner: str) -> None:
        for child in node.named_children:
            if child.type in _CLASSES:
                self._class(child)
        words = text_of(node)
        if node.type == "field_declaration":
            for each in _variables(node):
                self._unit.fields.setdefault(owner, {})[each.name] = each.type
            return
        self._outside.append(words)
        for each in _variables(node):
            self._unit.shared.setdefault(each.name, each)
        for value in _all(node, "lambda_expression"):
            _add_lambda(self, value)

    def _class(self, node: Node) -> None:
        named, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        above = node.parent
        if named is None and above is not None and above.type == "type_definition":   # of C: typedef struct {...} NAME
            named = above.child_by_field_name("declarator")
        if body is not None:
            self._level(body, text_of(named).split("<")[0] if named is not None else "")

    def _macro(self, node: Node) -> None:
        named, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if named is not None and text_of(named) not in self._macros.defining | self._macros.writing:   # are expanded
            name, body = text_of(named), text_of(value) if value is not None else ""
            # Where all branches of `#if` are read, a macro may have several definitions.
            line, before = self._unit.macros.get(name, (line_of_node(node), ""))
            self._unit.macros[name] = (line, f"{before} {body}")


def _add_lambda(reader: _Outside, node: Node) -> None:
    function, body = _lambda(node, reader._unit.file, "")  # noqa: SLF001 - of this module
    if body is not None:
        reader._add(function, body)  # noqa: SLF001


class _Inside:
    """Reads the body of a function; nested lambdas are given back as functions of their own."""

    _CHANGES = frozenset({"push_back", "emplace_back", "pop_back", "push_front", "pop_front", "insert", "emplace",
                          "try_emplace", "insert_or_assign", "erase", "clear", "resize", "reserve", "assign", "swap",
                          "push", "pop", "append", "reset", "store_unlocked"})
    _CLEARING = re.compile(r"Py_(?:CLEAR|X?SETREF)$")
    _FILLING = re.compile(r"PyArg_\w+$|s?n?scanf$|time$|gettimeofday$|clock_gettime$")
    # These write to what their first argument points to, or take it away from those who use it.
    _CHANGING_FIRST = re.compile(r"(?:w?mem(?:set|cpy|move)|str(?:n?cpy|n?cat)|sn?printf|free|realloc|PyBuffer_Release"
                                 r"|Py(?:Mem|Object)_(?:Raw)?(?:Free|FREE|Realloc|REALLOC|Resize|RESIZE|Del|DEL))$")
    _GUARD = re.compile(r"\s*(?:const\s+)?(?:auto\s+\w+\s*=\s*)?(?:\w+\s*::\s*)*"
                        r"(?:lock_guard|scoped_lock|unique_lock|ft_lock_guard|ft_object_guard|ft_object2_guard|scoped_critical_section|\w*MutexLock\w*|\w*LockGuard\w*|"
                        r"\w*CriticalSection\w*)\b")

    def __init__(self, function: Function, macros: MacroTable) -> None:
        self._of = function
        self._macros = macros
        self._lambdas: list[tuple[Function, Node]] = []

    def read(self, body: Node) -> list[tuple[Function, Node]]:
        self._walk(body, (), ())
        return self._lambdas

    def _walk(self, node: Node, blocks: tuple[int, ...], tests: tuple[str, ...]) -> None:
        kind, of = node.type, self._of
        if kind == "lambda_expression":
            function, body = _lambda(node, of.file, of.owner)
            if body is not None:
                self._lambdas.append((function, body))
            return
        if kind in _CLASSES and node.child_by_field_name("body") is not None:
            return
        if kind == "preproc_def" and (named := node.child_by_field_name("name")) is not None:
            value = node.child_by_field_name("value")
            name = text_of(named)
            of.macros[name] = f"{of.macros.get(name, '')} {text_of(value) if value is not None else ''}"
        if kind in {"compound_statement", "case_statement"}:
            blocks = (*blocks, node.start_byte)
            of.block_ends[node.start_byte] = node.end_byte
            of.blocks[node.start_byte] = node
        self._note(node, blocks, tests)
        condition = node.child_by_field_name("condition") if kind in {"if_statement", "while_statement"} else None
        never = self._never_run(node, condition) if condition is not None and kind == "if_statement" else None
        inner = (*tests, text_of(condition)) if condition is not None else tests
        for child in node.named_children:
            if child == never:
                continue
            # The branch of an `if` without braces is a block, too.
            owned = (kind in _BLOCK_OWNERS and child.type.endswith(("_statement", "_clause"))
                     and child.type != "compound_statement")
            if owned:
                of.block_ends.setdefault(child.start_byte, child.end_byte)
            self._walk(child, (*blocks, child.start_byte) if owned else blocks, tests if child == condition else inner)

    def _never_run(self, node: Node, condition: Node) -> Node | None:
        """Return the branch of an `if` that no run takes, as its condition is a constant; None if there is none."""
        value = self._macros.constant(text_of(condition))
        return None if value is None else node.child_by_field_name("alternative" if value else "consequence")

    def _note(self, node: Node, blocks: tuple[int, ...], tests: tuple[str, ...]) -> None:
        """Keep what a node says."""
        kind, of = node.type, self._of
        if kind in {"identifier", "field_identifier"}:
            of.names.setdefault(text_of(node), []).append(node.start_byte)
        elif kind in {"return_statement", "goto_statement", "break_statement", "continue_statement"}:
            of.leaves.append(node.start_byte)
            if kind == "return_statement" and node.named_children:
                of.returns.append((node.start_byte, blocks, node.named_children[0]))
        elif kind == "declaration":
            self._declaration(node, blocks)
        elif kind == "assignment_expression":
            self._assignment(node, blocks, tests)
        elif kind == "update_expression":
            self._write(node.child_by_field_name("argument"), node, blocks, tests)
        elif kind == "call_expression":
            self._call(node, blocks, tests)
        elif kind == "for_range_loop":
            of.loops.append((node, node.child_by_field_name("right")))

    def _declaration(self, node: Node, blocks: tuple[int, ...]) -> None:
        if self._GUARD.match(text_of(node)):
            end = self._of.block_ends.get(blocks[-1] if blocks else -1, self._of.node.end_byte)
            self._of.guards.append((node.start_byte, end))
        for each in _variables(node):
            self._of.locals.setdefault(each.name, each)
        for child in node.named_children:
            if child.type == "init_declarator":
                named, value = child.child_by_field_name("declarator"), child.child_by_field_name("value")
                if named is not None and value is not None and (name := _declared_name(named)):
                    self._of.assignments.setdefault(name, []).append(
                        Assignment(start=child.start_byte, blocks=blocks, value=value))

    def _assignment(self, node: Node, blocks: tuple[int, ...], tests: tuple[str, ...]) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        if left.type == "identifier":
            self._of.assignments.setdefault(text_of(left), []).append(
                Assignment(start=node.start_byte, blocks=blocks, value=right))
        self._write(left, node, blocks, tests)

    def _write(self, target: Node | None, node: Node, blocks: tuple[int, ...], tests: tuple[str, ...],
               method: str = "", *, pointed: bool = False) -> None:
        if target is not None:
            self._of.writes.append(Write(target=target, start=node.start_byte, blocks=blocks, tests=tests,
                                         method=method, pointed=pointed))

    def _call(self, node: Node, blocks: tuple[int, ...], tests: tuple[str, ...]) -> None:
        called, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if called is None or given is None:
            return
        arguments = tuple(each for each in given.named_children if each.type != "comment")
        words = re.findall(r"\w+", text_of(called).split("<")[0] if "class_" in text_of(called) else text_of(called))
        name = words[-1] if words else ""
        if called.type == "template_function":
            name = re.findall(r"\w+", text_of(called).split("<")[0])[-1]
        self._of.calls.append(Call(name=name, node=node, arguments=arguments, start=node.start_byte, blocks=blocks))
        if self._CLEARING.match(name) and arguments:
            self._write(arguments[0], node, blocks, tests)
        elif self._CHANGING_FIRST.match(name) and arguments:
            self._write(arguments[0], node, blocks, tests, pointed=True)
        elif self._FILLING.match(name):
            for each in arguments:
                if each.type == "pointer_expression" and text_of(each).startswith("&"):
                    self._write(each.child_by_field_name("argument"), node, blocks, tests, method=name)
        elif called.type == "field_expression" and name in self._CHANGES:
            self._write(called.child_by_field_name("argument"), node, blocks, tests, method=name)


def _lambda(node: Node, file: str, owner: str) -> tuple[Function, Node | None]:
    declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    return Function(name="", owner=owner, head="", file=file, node=node, parameters=_parameters(listed)), body


def _parameters(listed: Node | None) -> list[CVariable]:
    found = []
    for child in listed.named_children if listed is not None else ():
        if child.type in {"parameter_declaration", "optional_parameter_declaration"}:
            nameless = CVariable(name="", type=text_of(child), pointer=False, array=False, reference=False,
                                 static=False, start=child.start_byte, line=line_of_node(child))
            found.append(next(_variables(child), nameless))
    return found


def _variables(node: Node) -> Iterator[CVariable]:
    """Yield the variables of a declaration, without functions."""
    first = node.child_by_field_name("declarator")
    if first is None:
        return
    words = text_of(node)[:first.start_byte - node.start_byte]
    static = re.search(r"\b(?:static|extern)\b", words) is not None
    for child in node.children_by_field_name("declarator"):
        inner = child.child_by_field_name("declarator") if child.type == "init_declarator" else child
        name = _declared_name(inner)
        kinds = _kinds(inner)
        if not name or ("function_declarator" in kinds and "parenthesized_declarator" not in kinds
                        and not _is_constructed(inner, words)):
            continue
        # `T *const x` cannot be set anew.
        fixed = " const" if "pointer_declarator" in kinds and re.search(r"\*\s*const\b", text_of(inner)) else ""
        yield CVariable(name=name, type=f"{' '.join(words.split())}{fixed}", pointer="pointer_declarator" in kinds,
                        array="array_declarator" in kinds, reference="reference_declarator" in kinds, static=static,
                        start=child.start_byte, line=line_of_node(child))


def _is_constructed(node: Node, words: str) -> bool:
    """Return True for a variable of C++ with arguments of its constructor, which looks like a function."""
    return "::" in words and node.type == "function_declarator" and not re.search(r"[*&]", text_of(node))


def _kinds(node: Node | None) -> set[str]:
    found: set[str] = set()
    while node is not None:
        found.add(node.type)
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in {"reference_declarator", "parenthesized_declarator"} and node.named_children:
            inner = node.named_children[-1]
        node = inner
    return found


def _declared_name(node: Node | None) -> str:
    while node is not None:
        if node.type in {"identifier", "field_identifier"}:
            return text_of(node)
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in {"reference_declarator", "parenthesized_declarator"} and node.named_children:
            inner = node.named_children[-1]
        node = inner
    return ""


def _find(node: Node, kind: str) -> Node | None:
    while node is not None and node.type != kind:
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in {"reference_declarator", "parenthesized_declarator"} and node.named_children:
            inner = node.named_children[-1]
        node = inner
    return node


def _all(node: Node, kind: str) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == kind:
            yield child
        else:
            yield from _all(child, kind)
