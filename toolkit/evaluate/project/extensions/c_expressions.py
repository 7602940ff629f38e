"""Read expressions and statements of C and C++: what a name stands for, what is stored, where a run goes on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.c_tree import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.project.extensions.c_tree import Function, Write

    Node = Any   # tree_sitter.Node

WORDS = re.compile(r"\w+")
_NUMBER = re.compile(r"(?:NULL|nullptr|0|-1|nil)$")


def stored_in(function: Function) -> Iterator[tuple[str, Write]]:
    """Yield the variables whose value a function stores in a field, or in an array that something points to."""
    for write in function.writes:
        node = bare(write.target).parent
        value = bare(node.child_by_field_name("right")) if node is not None and (
            node.type == "assignment_expression") else None
        if value is not None and value.type == "identifier" and bare(write.target).type in {
                "field_expression", "subscript_expression"}:
            yield text_of(value), write


def without_ranges(held: tuple[int, int], gaps: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of the range `held` outside of the gaps, which do not overlap each other."""
    start, end = held
    parts = []
    for first, last in sorted(gaps):
        if start < first < end:
            parts.append((start, first))
            start = min(last, end)
    return [*parts, (start, end)]


def never_goes_on(node: Node | None) -> bool:
    """Return True if no run goes on below a statement."""
    if node is None:
        return False
    match node.type:
        case "return_statement" | "goto_statement" | "break_statement" | "continue_statement":
            return True
        case "compound_statement" | "else_clause":
            inner = [each for each in node.named_children if each.type != "comment"]
            return bool(inner) and never_goes_on(inner[-1])
        case "if_statement":
            return (never_goes_on(node.child_by_field_name("consequence"))
                    and never_goes_on(node.child_by_field_name("alternative")))
    return False


def is_other_branch(blocks: tuple[int, ...], at: tuple[int, ...], function: Function) -> bool:
    """Return True if an assignment in `blocks` lies in a block that has ended, and leaves the function at its end."""
    inner = blocks[len([1 for one, other in zip(blocks, at, strict=False) if one == other]):]
    if not inner:
        return False
    start, end = inner[0], function.block_ends.get(inner[0], inner[0])
    return any(start <= place < end for place, _, _ in function.returns)


def bare(node: Node) -> Node:
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


def root(node: Node) -> tuple[str, bool]:
    """Return the variable at the root of an expression, "" for a call, and whether a pointer is followed to a field."""
    through = False
    while True:
        node = bare(node)
        match node.type:
            case "field_expression":
                through = through or any(child.type == "->" for child in node.children)
                node = node.child_by_field_name("argument")
            case "subscript_expression":
                node = node.child_by_field_name("argument") or node.named_children[0]
            case "pointer_expression":
                if text_of(node).startswith("&"):
                    return root(node.child_by_field_name("argument"))[0], through
                inner = node.child_by_field_name("argument")
                parent = node.parent
                while parent is not None and parent.type == "parenthesized_expression":
                    parent = parent.parent
                through = through or (parent is not None and parent.type == "field_expression")
                node = inner
            case "identifier" | "this" | "field_identifier":
                return text_of(node), through
            case "qualified_identifier":
                words = WORDS.findall(text_of(node))
                return words[-1], through
            case _:
                return "", through


def pointer_of(node: Node) -> str:
    """Return the variable that points to what an expression stands for: "p" of `*p`, `p[1].a`, `p + 1`; "" if none."""
    while True:
        node = bare(node)
        match node.type:
            case "identifier":
                return text_of(node)
            case "pointer_expression" | "subscript_expression" | "update_expression" | "field_expression":
                node = node.child_by_field_name("argument") or node.named_children[0]
            case "binary_expression":
                node = node.child_by_field_name("left")
            case _:
                return ""


def is_number(node: Node) -> bool:
    """Return True for a number or a null pointer."""
    node = bare(node)
    return (node.type in {"null", "number_literal", "false", "true", "nullptr"}
            or _NUMBER.match(text_of(node)) is not None)


def last_word(name: str) -> str:
    """Return the last word of a name in lower case: "clear" of `LRU_tpClear`."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return words[-1].lower() if words else ""
