"""Name variables and locks as their author would: by the text of the access, the classes around it, and globals.

A variable's name has two parts: the text that a report shows, and the *base* by which reports on one variable are
merged: `Account.balance of <Account 'bob'>` has the base `Account.balance`, `counts['the']` the base `counts`.
"""

from __future__ import annotations

import ast
import os
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race import effects, safe_inspection
from gilscope.toolkit.race.core import NO_VALUE, UNKNOWN_LOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from gilscope.toolkit.race.core import Core, Place
    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.spool import Plain
    from gilscope.toolkit.race.verdicts.source_context import SourceFiles

_code = FunctionType.__dict__["__code__"].__get__


class ObjectName(NamedTuple):
    """The name of an object, and of the module or function that it belongs to, "" if a reader knows that."""

    name: str
    place: str = ""

    @property
    def text(self) -> str:
        """The name as a report has it."""
        return f"{self.name} of {self.place}" if self.place else self.name


def global_of(value: Any, paths: Sequence[str], files: set[str]) -> ObjectName | None:
    """Return the global that holds an object, or None.

    Args:
        value: The object.
        paths: Of the modules to look into first.
        files: Paths of the modules whose globals mean something to the author, not those of a test runner.
    """
    modules = [(module.get("__file__"), name, module) for name, module in _modules()]
    for path in (*paths, None):
        for file, name, module in modules:
            if (file == path or (path is None and file in files)) and (found := _key_of(module, value)):
                is_known = path is not None and (name == "__main__" or len(paths) == 1)
                return ObjectName(found, "" if is_known else name)
    return None


def _modules() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, module in safe_inspection.snapshot(sys.modules):
        if type(name) is str and issubclass(type(module), ModuleType):
            namespace = safe_inspection.instance_dict(module)
            if namespace is not None:
                yield name, namespace


def _key_of(namespace: dict[str, Any], value: Any) -> str | None:
    found = [name for name, item in safe_inspection.snapshot(namespace) if item is value and type(name) is str]
    return min(found) if found else None


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


class VariableNamer:
    """Source of names for the variables of one process."""

    def __init__(self, sites: Sequence[SiteInfo]) -> None:
        self._sites = sites

    def global_of(self, value: Any, paths: Sequence[str]) -> ObjectName | None:
        """Return the global that holds an object, first of the files at `paths`; see the function of this name."""
        return global_of(value, paths, {site.path for site in list(self._sites)})

    def variable(self, part: str, owner: Any, key: Any, sides: Sequence[SiteInfo],
                 module: dict[str, Any] | None = None, receiver: Any = NO_VALUE) -> VariableName:
        """Return the name of a location.

        Args:
            part: "attr", "item", "structure", "iterator" or "cell".
            owner: The object of the location; a module's dict for a global; a token for a closure variable.
            key: Attribute, item or variable name.
            sides: The sites of the accesses.
            module: The globals of a frame that accesses it, if known.
            receiver: The object whose getter or setter accesses it, if known.
        """
        if part == "attr":
            return self._attribute(owner, key, sides)
        if part == "cell":
            return _closure_variable(str(key), sides[0], self._sites)
        if part == "item" and is_module_dict(owner):
            text = f"global {key} in {module_file(owner, sides[0].path)}"
            return VariableName(text, text, str(key))
        found = self.container(owner, sides, module) or _attribute_of(receiver, owner)
        base, name = (found.text, found.name) if found else (f"a {safe_inspection.class_name(type(owner))}", "")
        if part != "item":
            return VariableName(base, base, name)   # the kind of race says that it is about what the container holds
        if issubclass(type(owner), set | frozenset):
            return VariableName(f"{safe_inspection.show(key)} in {base}", base, name)
        item = f"[{safe_inspection.item_key(key)}]"
        return VariableName(base + item, base, name, item)

    def _attribute(self, owner: Any, key: str, sides: Sequence[SiteInfo]) -> VariableName:
        if safe_inspection.is_class(owner):
            name = safe_inspection.class_name(owner)
            text = f"{name}.{unmangled(key, name)}"
            return VariableName(text, text, text)
        if type(owner) is FunctionType:
            text = f"{_code(owner).co_name}.{key}"
            return VariableName(text, text, text)
        cls = safe_inspection.class_name(type(owner))
        base = f"{cls}.{unmangled(key, cls)}"
        return VariableName(f"{base} of {self.instance(owner, without=key, hints=sides)}", base, base)

    def instance(self, owner: Any, *, without: str, hints: Sequence[SiteInfo] = ()) -> str:
        """Return a text that distinguishes the object from others: its label, a global's name, or its address."""
        cls = safe_inspection.class_name(type(owner))
        if text := safe_inspection.label(owner, without):
            return f"<{cls} {text}>"
        paths = tuple(dict.fromkeys(site.path for site in hints))
        if found := self.global_of(owner, paths):
            return found.text
        return f"<{cls} at {id(owner):#x}>"

    def container(self, owner: Any, sides: Sequence[SiteInfo], module: dict[str, Any] | None) -> ObjectName | None:
        """Return the name of a container: `Ledger.counts`, `counts`, that of a local variable, or None."""
        texts = [(container_text(site), site) for site in sides]
        for text, site in texts:
            if (cls := enclosing_class(site.function)) and text.partition(".")[0] in FIRST_ARGUMENTS and "." in text:
                return ObjectName(f"{cls}.{unmangled(text.partition('.')[2], cls)}")
        if name := _global_name(owner, module):
            return ObjectName(name)
        # A dotted name is better than that of a parameter, and so is a global that holds the object.
        if dotted := next((text for text, _ in texts if "." in text and "(" not in text), ""):
            return ObjectName(dotted)
        if found := self.global_of(owner, tuple(dict.fromkeys(site.path for site in sides))):
            return found
        return next((ObjectName(text) for text, _ in texts if text), None)


def _attribute_of(receiver: Any, owner: Any) -> ObjectName | None:
    """Return the name of the attribute that holds an object, or None."""
    names = [name for name, item in safe_inspection.attributes(receiver) if item is owner]
    return ObjectName(f"{safe_inspection.class_name(type(receiver))}.{names[0]}") if names else None


def is_module_dict(owner: Any) -> bool:
    """Return True if a dict is the namespace of a module."""
    return type(owner) is dict and "__name__" in owner and ("__builtins__" in owner or "__spec__" in owner)


def module_file(namespace: dict[str, Any], fallback: str) -> str:
    """Return the file name of the module with that namespace, with its folder for a package."""
    path = namespace.get("__file__")
    path = path if type(path) is str else fallback
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


def _closure_variable(key: str, site: SiteInfo, sites: Sequence[SiteInfo]) -> VariableName:
    """Name a closure variable after the outermost function that binds it."""
    around = site.function.split(".<locals>.")
    enclosing = [".<locals>.".join(around[:depth + 1]) for depth in range(len(around))]
    accessing = {other.function for other in sites
                 if other.path == site.path and other.key == key and other.op.startswith("cell_")}
    owner = next((function for function in enclosing if function in accessing), site.function)
    if owner == site.function and len(enclosing) > 1:
        owner = enclosing[-2]
    text = f"local {key} of {safe_inspection.short_function(owner)} (closure)"
    return VariableName(text, text, key)


def _global_name(owner: Any, module: dict[str, Any] | None) -> str | None:
    """Return the object's name in the module's globals, or None."""
    if module is None:
        return None
    named = safe_inspection.snapshot(module)
    return next((name for name, value in named if value is owner and type(name) is str), None)


# Files that acquire locks for their callers.
OWN_CODE = ("threading.py", "queue.py", "_base.py", "thread.py", "synchronize.py", "process_locks.py")


class LockNamer:
    """Source of names for the locks of one process."""

    def __init__(self, core: Core, sources: SourceFiles, naming: VariableNamer) -> None:
        self._core = core
        self._sources = sources
        self._naming = naming
        self._known: dict[int, dict[str, Plain]] = {}

    def describe(self, uid: int) -> dict[str, Plain]:
        """Return the lock's uid, name and the place of its first acquisition."""
        found = self._known.get(uid)
        if uid == UNKNOWN_LOCKS:
            return {"uid": uid, "name": "unknown locks", "at": []}
        if found is None:
            stack, lock = self._core.lock_origin(uid)
            place = next((place for place in stack if not place[0].endswith(OWN_CODE)), None)
            found = self._known.setdefault(uid, {
                "uid": uid, "name": self._name(place, lock),
                "at": [[self._sources.path(path), line, function]
                       for path, line, function in ([place] if place else stack[:1])],
            })
        return found

    def _name(self, place: Place | None, lock: Any) -> str:
        text = "" if place is None else self._written(place)
        if place is not None and text.partition(".")[0] in FIRST_ARGUMENTS and (cls := enclosing_class(place[2])):
            return f"{cls}.{unmangled(text.partition('.')[2], cls)}" if "." in text else cls
        paths = () if place is None else (place[0],)
        if lock is not None and (found := self._naming.global_of(lock, paths)):
            return _as_global(found, paths)
        if text:
            return text
        return "a lock" if place is None else f"the lock first taken in {place[2]}"

    def _written(self, place: Place) -> str:
        """Return the lock expression that the line acquires, "" if it has none."""
        path, line, _ = place
        tree = self._sources.tree(path)
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


def _as_global(found: ObjectName, paths: tuple[str, ...]) -> str:
    if not found.place and found.name.isidentifier() and paths:
        file = paths[0].replace("\\", "/").rpartition("/")[2]
        return f"global {found.name} in {file}"
    return found.text
