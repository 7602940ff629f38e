"""Name variables and locks as their author would: by the text of the access, the classes around it, and globals.

A variable's name has two parts: the text that a report shows, and the *base* by which reports on one variable are
merged: `Account.balance of <Account 'bob'>` has the base `Account.balance`, `counts['the']` the base `counts`.
"""

from __future__ import annotations

import ast
import os
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race import effects
from gilscope.toolkit.race.conflicts.recorder import LOCKING
from gilscope.toolkit.race.core import UNKNOWN_LOCKS
from gilscope.toolkit.race.report.model import Frame, HeldLock
from gilscope.toolkit.race.safe_inspection import short_function

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.verdicts.conflict_context import SiteIndex
    from gilscope.toolkit.race.verdicts.records import (
        ConflictRecord,
        FunctionPlace,
        GlobalName,
        LockRecord,
        OwnerRecord,
    )
    from gilscope.toolkit.race.verdicts.source_context import SourceFiles

FIRST_ARGUMENTS = frozenset({"self", "cls", "klass", "mcs"})
# Methods and functions that return what is in a container: its name is that of their object or first argument.
VIEWS = effects.VIEWS | {"copy"}
READERS = frozenset({"next", *(name for name, function in effects.BUILTINS.items() if function.reads_first)})


class VariableName(NamedTuple):
    """The name of a variable, for reports and for scripts."""

    text: str
    base: str            # without key and instance: reports are merged by it
    name: str            # as the source has it, such as "clicks" or "Account.balance"; "" if it has no name
    item_key: str = ""   # as the source has it, such as "['the']"; "" if the variable is no item


def variable_name(conflict: ConflictRecord, sites: SiteIndex) -> VariableName:
    """Return the name of the variable of a conflict."""
    owner, key, part = conflict.owner, conflict.key, conflict.part
    sides = [sites[conflict.first.site], sites[conflict.second.site]]
    if part == "attr":
        return _attribute(owner, key)
    if part == "cell":
        return _closure_variable(key, sides[0], sites)
    if part == "item" and owner.form == "module":
        text = f"global {key} in {module_file(owner.name or sides[0].path)}"
        return VariableName(text, text, key)
    base, name = _container(owner, sides) or (f"a {owner.name if owner.form != 'module' else 'dict'}", "")
    if part != "item":
        return VariableName(base, base, name)   # the kind of race says that it is about what the container holds
    if {"set", "frozenset"} & {*owner.bases}:
        return VariableName(f"{key} in {base}", base, name)
    return VariableName(f"{base}[{key}]", base, name, f"[{key}]")


def _attribute(owner: OwnerRecord, key: str) -> VariableName:
    if owner.form == "function":
        text = f"{owner.name}.{key}"
        return VariableName(text, text, text)
    base = f"{owner.name}.{unmangled(key, owner.name)}"
    return VariableName(f"{base} of {owner.label}" if owner.form == "instance" else base, base, base)


def _container(owner: OwnerRecord, sides: Sequence[SiteInfo]) -> tuple[str, str] | None:
    """Return the name of a container, with its module and without: `Ledger.counts`, `counts`, or None."""
    texts = [(container_text(site), site) for site in sides]
    for text, site in texts:
        if (cls := enclosing_class(site.function)) and text.partition(".")[0] in FIRST_ARGUMENTS and "." in text:
            name = f"{cls}.{unmangled(text.partition('.')[2], cls)}"
            return name, name
    # A dotted name is better than that of a parameter, and so is a global that holds the object.
    dotted = next((text for text, _ in texts if "." in text and "(" not in text), "")
    if owner.holder and not (owner.local or dotted):
        return global_text(owner.holder), owner.holder[0]
    name = owner.local or dotted or next((text for text, _ in texts if text), "") or owner.attribute
    return (name, name) if name else None


def global_text(holder: GlobalName) -> str:
    """Return the name of a global, with its module where that is not known."""
    name, module = holder
    return f"{name} of {module}" if module else name


def module_file(path: str) -> str:
    """Return the file name of a module, with its folder for a package."""
    folder, name = os.path.split(path)
    return f"{os.path.basename(folder)}/{name}" if name == "__init__.py" else name


def unmangled(key: str, cls: str) -> str:
    """Return a private name as it is written in its class."""
    prefix = "_" + cls.rpartition(".")[2].lstrip("_")
    if key.startswith(prefix + "__"):
        return key.removeprefix(prefix)
    return key


def enclosing_class(function: str) -> str | None:
    """Return the class of the method with a qualified name, also for functions inside of the method."""
    for part in reversed(function.split(".<locals>.")):
        head, dot, _ = part.rpartition(".")
        if dot:
            return head
    return None


def container_text(site: SiteInfo) -> str:
    """Return the source of the container that a site accesses: `self.counts` of `self.counts[word]`.

    "" if the text does not tell, as for the call of a getter.
    """
    if site.op in {"reads", "writes"}:
        return ""
    try:
        node = ast.parse(site.text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    while True:
        inner = _inner(node, site)
        if inner is None:
            return ast.unparse(node)
        node = inner


def _inner(node: ast.expr, site: SiteInfo) -> ast.expr | None:
    """Return the part of the expression that contains the container, None if it is the container itself."""
    if isinstance(node, ast.Compare):
        return node.comparators[0] if site.op == "contains" else None
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and (node.func.attr in VIEWS or node.func.attr == site.key):
            return node.func.value
        named = isinstance(node.func, ast.Name) and node.func.id in READERS
        return node.args[0] if named and node.args else None
    if isinstance(node, ast.Attribute):
        return node.value if site.op == "method" and node.attr == site.key else None
    whole = isinstance(node, ast.Subscript) and site.op.startswith("item_") and _same_text(node, site.text)
    return node.value if whole and isinstance(node, ast.Subscript) else None


def _same_text(node: ast.expr, text: str) -> bool:
    return node.col_offset == 0 and node.end_col_offset == len(text.strip().encode())


def _closure_variable(key: str, site: SiteInfo, sites: SiteIndex) -> VariableName:
    """Name a closure variable after the outermost function that binds it."""
    around = site.function.split(".<locals>.")
    enclosing = [".<locals>.".join(around[:depth + 1]) for depth in range(len(around))]
    accessing = {other.function for other in sites.all()
                 if other.path == site.path and other.key == key and other.op.startswith("cell_")}
    owner = next((function for function in enclosing if function in accessing), site.function)
    if owner == site.function and len(enclosing) > 1:
        owner = enclosing[-2]
    text = f"local {key} of {short_function(owner)} (closure)"
    return VariableName(text, text, key)


def held_lock(lock: LockRecord, sources: SourceFiles) -> HeldLock:
    """Return a lock with its name and the place where it was first acquired."""
    if lock.uid == UNKNOWN_LOCKS:
        return HeldLock(uid=lock.uid, name="unknown locks", taken=None)
    place = next((place for place in lock.at if not place[0].endswith(LOCKING)), None)
    taken = None
    if lock.at:
        path, line, function = lock.at[0]
        taken = Frame(path=path, line=line, function=function)
    return HeldLock(uid=lock.uid, name=_lock_name(place, lock.holder, sources), taken=taken)


def _lock_name(place: FunctionPlace | None, holder: GlobalName | None, sources: SourceFiles) -> str:
    text = "" if place is None else _written(place, sources)
    if place is not None and text.partition(".")[0] in FIRST_ARGUMENTS and (cls := enclosing_class(place[2])):
        return f"{cls}.{unmangled(text.partition('.')[2], cls)}" if "." in text else cls
    if holder is not None:
        name, module = holder
        is_known = not module and name.isidentifier() and place is not None
        return f"global {name} in {os.path.basename(place[0])}" if is_known and place else global_text(holder)
    if text:
        return text
    return "a lock" if place is None else f"the lock first taken in {place[2]}"


def _written(place: FunctionPlace, sources: SourceFiles) -> str:
    """Return the lock expression that the line acquires, "" if it has none."""
    path, line, _ = place
    tree = sources.tree(path)
    if tree is None:
        return ""
    texts = [text for node in ast.walk(tree) if (text := _acquired(node, line))]
    return texts[0] if len(texts) == 1 else ""


def _acquired(node: ast.AST, line: int) -> str | None:
    if isinstance(node, ast.With | ast.AsyncWith):
        here = [item.context_expr for item in node.items if item.context_expr.lineno == line]
        # Of several locks in one statement the line does not say which this is.
        return ast.unparse(here[0]) if len(here) == 1 and not isinstance(here[0], ast.Call) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.lineno == line:
        return ast.unparse(node.func.value) if node.func.attr == "acquire" else None
    return None
