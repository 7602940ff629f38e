"""Name a variable as its author would: by the text of the access, the classes around it, and who refers to the object.

A name has two parts: the text that a report shows, and the *base* by which reports of one variable are merged:
`Account.balance of <Account 'bob'>` has the base `Account.balance`, `counts['the']` the base `counts`.
"""

from __future__ import annotations

import ast
import os
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race.conflicts import safe_inspection
from gilscope.toolkit.race.conflicts.naming.referrers import Referrers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gilscope.toolkit.race.site import SiteInfo

_code = FunctionType.__dict__["__code__"].__get__
FIRST_ARGUMENTS = frozenset({"self", "cls", "klass", "mcs"})
VIEWS = frozenset({"items", "keys", "values", "copy"})
SNAPSHOTS = frozenset({"enumerate", "list", "sorted", "tuple", "set", "reversed", "iter", "len"})


class Name(NamedTuple):
    """A variable's name."""

    text: str
    base: str


class Naming:
    """Names variables of one process; searches for who refers to an object are bounded."""

    def __init__(self, sites: Sequence[SiteInfo], referrers: Referrers | None = None) -> None:
        self._sites = sites
        self.referrers = referrers or Referrers(lambda: {site.path for site in list(sites)})

    def variable(self, part: str, owner: Any, key: Any, sides: Sequence[SiteInfo],
                 module: dict[str, Any] | None = None) -> Name:
        """Return the name of a location.

        Args:
            part: "attr", "item", "structure", "iterator" or "cell".
            owner: The object it is part of; a module's dict for a global; a token for a closure variable.
            key: Attribute, item or variable name.
            sides: The sites of the accesses, whose text speaks of it.
            module: The globals of a frame that accesses it, where they are at hand.
        """
        if part == "attr":
            return self._attribute(owner, key, sides)
        if part == "cell":
            return _closure_variable(str(key), sides[0], self._sites)
        if part == "item" and is_module_dict(owner):
            text = f"global {key} in {module_file(owner, sides[0].path)}"
            return Name(text, text)
        base = self.container(owner, sides, module)
        if part != "item":
            return Name(base, base)   # the kind of race says that it is about what the container holds
        if issubclass(type(owner), set | frozenset):
            return Name(f"{safe_inspection.show(key)} in {base}", base)
        return Name(f"{base}[{item_key(key)}]", base)

    def _attribute(self, owner: Any, key: str, sides: Sequence[SiteInfo]) -> Name:
        if safe_inspection.is_class(owner):
            name = safe_inspection.class_name(owner)
            text = f"{name}.{unmangled(key, name)}"
            return Name(text, text)
        if type(owner) is FunctionType:
            text = f"{_code(owner).co_name}.{key}"
            return Name(text, text)
        cls = safe_inspection.class_name(type(owner))
        base = f"{cls}.{unmangled(key, cls)}"
        return Name(f"{base} of {self.instance(owner, without=key, hints=sides)}", base)

    def instance(self, owner: Any, *, without: str, hints: Sequence[SiteInfo] = ()) -> str:
        """Return how one tells the object from its like: its label, who refers to it, or its address."""
        cls = safe_inspection.class_name(type(owner))
        if text := safe_inspection.label(owner, without):
            return f"<{cls} {text}>"
        paths = tuple(dict.fromkeys(site.path for site in hints))
        if text := self.referrers.name(owner, paths):
            return text
        return f"<{cls} at {id(owner):#x}>"

    def container(self, owner: Any, sides: Sequence[SiteInfo], module: dict[str, Any] | None) -> str:
        """Return the name of a container: `Ledger.counts`, `counts`, `Pool.jobs`, or that of a local variable."""
        texts = [(container_text(site), site) for site in sides]
        for text, site in texts:
            if (cls := enclosing_class(site.function)) and text.partition(".")[0] in FIRST_ARGUMENTS and "." in text:
                return f"{cls}.{unmangled(text.partition('.')[2], cls)}"
        if name := _global_name(owner, module):
            return name
        # A dotted name says more than the name of a parameter; a parameter's object may have a better name elsewhere.
        if dotted := next((text for text, _ in texts if "." in text and "(" not in text), ""):
            return dotted
        if name := self.referrers.name(owner, tuple(site.path for site in sides)):
            return name
        return next((text for text, _ in texts if text), f"a {safe_inspection.class_name(type(owner))}")


def is_module_dict(owner: Any) -> bool:
    """Tell whether a dict is the namespace of a module."""
    return type(owner) is dict and "__name__" in owner and ("__builtins__" in owner or "__spec__" in owner)


def module_file(namespace: dict[str, Any], fallback: str) -> str:
    """Return the file name of the module with that namespace, with its folder where it is a package's."""
    path = namespace.get("__file__")
    path = path if type(path) is str else fallback
    folder, name = os.path.split(path)
    return f"{os.path.basename(folder)}/{name}" if name == "__init__.py" else name


def unmangled(key: str, cls: str) -> str:
    """Return a private name as it stands in its class."""
    prefix = "_" + cls.rpartition(".")[2].lstrip("_")
    if key.startswith(prefix + "__"):
        return key.removeprefix(prefix)
    return key


def item_key(key: Any) -> str:
    """Return the text between the brackets."""
    if type(key) is tuple and key:
        return ", ".join(map(safe_inspection.show, key))
    return safe_inspection.show(key)


def enclosing_class(function: str) -> str | None:
    """Return the class whose method a qualified name is of, also from functions inside the method."""
    for part in reversed(function.split(".<locals>.")):
        head, dot, _ = part.rpartition(".")
        if dot:
            return head
    return None


def container_text(site: SiteInfo) -> str:
    """Return the source of the container that a site accesses: `self.counts` of `self.counts[word]`.

    "" where the text does not say: a getter's call reads something inside.
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
    """Return the part of the expression that the container is in, None when it is the container itself."""
    if isinstance(node, ast.Compare):
        return node.comparators[0] if site.op == "contains" else None
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and (node.func.attr in VIEWS or node.func.attr == site.key):
            return node.func.value
        named = isinstance(node.func, ast.Name) and node.func.id in SNAPSHOTS | {"next"}
        return node.args[0] if named and node.args else None
    if isinstance(node, ast.Attribute):
        return node.value if site.op == "method" and node.attr == site.key else None
    whole = isinstance(node, ast.Subscript) and site.op.startswith("item_") and _same_text(node, site.text)
    return node.value if whole and isinstance(node, ast.Subscript) else None


def _same_text(node: ast.expr, text: str) -> bool:
    return node.col_offset == 0 and node.end_col_offset == len(text.strip().encode())


def _closure_variable(key: str, site: SiteInfo, sites: Sequence[SiteInfo]) -> Name:
    """Name a closure variable after the outermost function that binds it."""
    around = site.function.split(".<locals>.")
    enclosing = [".<locals>.".join(around[:depth + 1]) for depth in range(len(around))]
    accessing = {other.function for other in sites
                 if other.path == site.path and other.key == key and other.op.startswith("cell_")}
    owner = next((function for function in enclosing if function in accessing), site.function)
    if owner == site.function and len(enclosing) > 1:
        owner = enclosing[-2]
    text = f"local {key} of {safe_inspection.short_function(owner)} (closure)"
    return Name(text, text)


def _global_name(owner: Any, module: dict[str, Any] | None) -> str | None:
    """Return the name that the module gives the object, if it does."""
    if module is None:
        return None
    named = safe_inspection.snapshot(module)
    return next((name for name, value in named if value is owner and type(name) is str), None)
