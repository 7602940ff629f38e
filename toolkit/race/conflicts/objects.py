"""Describe the object that a variable belongs to while it is alive, for the report to name the variable.

Everything here is read without running code of the program.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType

from gilscope.toolkit.race import safe_inspection
from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.site import all_sites
from gilscope.toolkit.race.terms import ValueFact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.spool import Plain

_code = FunctionType.__dict__["__code__"].__get__
STEPS = 400           # frames to search for the one that accesses
OPTIMIZED = 1         # CO_OPTIMIZED: a function's frame
OF_INSTANCES = ("self.", "cls.")     # the texts of containers that need no search for a name
PLAIN_KEYS = (str, int, float, bytes, bool, type(None))


class ObjectDescriber:
    """Describes objects; what modules call one is looked up once, since that reads all their globals."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._holders: dict[tuple[int, tuple[str, ...]], list[Plain] | None] = {}

    def describe(self, part: str, owner: Any, key: Any, sides: Sequence[SiteInfo],
                 frame: FrameType | None) -> dict[str, Plain]:
        """Return the fields of an `OwnerRecord`.

        Args:
            part: "attr", "item", "structure", "iterator" or "cell".
            owner: The object of the location; a module's dict for a global; a token for a closure variable.
            key: Attribute, item or variable name.
            sides: The sites of both accesses.
            frame: The frame of the second one, if it is known.
        """
        facts: dict[str, Plain] = {
            "number": self._core.object_number(owner), "form": "instance", "name": "", "label": "", "bases": [],
            "strict": False, "local": "", "holder": None, "attribute": ""}
        if part == "cell":
            return facts
        facts["name"] = safe_inspection.class_name(type(owner))
        if part == "attr":
            return facts | self._of_attributes(owner, key, sides)
        if is_module_dict(owner):
            path = owner.get("__file__")
            return facts | {"form": "module", "name": path if type(path) is str else ""}
        bases: list[Plain] = [safe_inspection.own_name(base) for base in safe_inspection.mro(type(owner))]
        local = "" if frame is None else _key_of(frame.f_globals, owner) or ""
        named = local or any(site.text.startswith(OF_INSTANCES) and site.op != "contains" for site in sides)
        return facts | {
            "bases": bases, "strict": issubclass(type(owner), dict) and not _makes_keys(type(owner)), "local": local,
            "holder": None if named else self.holder(owner, tuple(dict.fromkeys(site.path for site in sides))),
            "attribute": _attribute_of(_receiver(frame, sides[1]), owner)}

    def _of_attributes(self, owner: Any, key: str, sides: Sequence[SiteInfo]) -> dict[str, Plain]:
        if safe_inspection.is_class(owner):
            return {"form": "class", "name": safe_inspection.class_name(owner)}
        if type(owner) is FunctionType:
            return {"form": "function", "name": _code(owner).co_name}
        return {"label": self._instance(owner, key, tuple(dict.fromkeys(site.path for site in sides)))}

    def _instance(self, owner: Any, key: str, paths: tuple[str, ...]) -> str:
        """Return a text that distinguishes the object from others: its label, a global's name, or its address."""
        cls = safe_inspection.class_name(type(owner))
        if text := safe_inspection.label(owner, key):
            return f"<{cls} {text}>"
        if found := self.holder(owner, paths):
            name, module = found
            return f"{name} of {module}" if module else str(name)
        return f"<{cls} at {id(owner):#x}>"

    def holder(self, value: Any, paths: tuple[str, ...]) -> list[Plain] | None:
        """Return the name of a global that holds an object, and that of its module, "" if a reader knows it; or None.

        Args:
            value: The object.
            paths: Of the modules to look into first.
        """
        number = self._core.object_number(value), paths
        if number not in self._holders:
            self._holders[number] = global_of(value, paths, {site.path for site in list(all_sites)})
        return self._holders[number]


def global_of(value: Any, paths: Sequence[str], files: set[str]) -> list[Plain] | None:
    """Return a global as `ObjectDescriber.holder` does; `files` are the modules whose globals mean something."""
    modules = [(module.get("__file__"), name, module) for name, module in _modules()]
    for path in (*paths, None):
        for file, name, module in modules:
            if (file == path or (path is None and file in files)) and (found := _key_of(module, value)):
                is_known = path is not None and (name == "__main__" or len(paths) == 1)
                return [found, "" if is_known else name]
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


def is_module_dict(owner: Any) -> bool:
    """Return True if a dict is the namespace of a module."""
    return type(owner) is dict and "__name__" in owner and ("__builtins__" in owner or "__spec__" in owner)


def _makes_keys(cls: type) -> bool:
    """Return True if reading a missing key creates it: defaultdict, Counter."""
    return any("__missing__" in safe_inspection.class_members(each) for each in safe_inspection.mro(cls))


def key_text(part: str, owner: Any, key: Any) -> str:
    """Return the attribute, the variable, or the item as it is written between the brackets; "" of a part."""
    if part in {"structure", "iterator"}:
        return ""
    if part in {"attr", "cell"} or is_module_dict(owner):
        return str.__str__(key) if issubclass(type(key), str) else safe_inspection.show(key)
    return safe_inspection.show(key) if issubclass(type(owner), set | frozenset) else safe_inspection.item_key(key)


def facts_of(value: Any) -> ValueFact:
    """Return the facts on a value that the verdict needs."""
    if value is NO_VALUE:
        return ValueFact.UNKNOWN
    found = ValueFact.KNOWN
    if safe_inspection.is_plain(value):
        found |= ValueFact.PLAIN if value else ValueFact.PLAIN | ValueFact.FALSE
    if value is None:
        found |= ValueFact.NONE
    if type(value) in {tuple, frozenset}:
        found |= ValueFact.COLLECTION
    return found | ValueFact.BARE if type(value) is object else found


def accessing_frame(site: SiteInfo) -> FrameType | None:
    """Return the current thread's frame that runs the site's function, or None."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  inspect does the same, and costs an import
    for _ in range(STEPS):
        if frame is None:
            return None
        if frame.f_code.co_filename == site.path and frame.f_code.co_qualname == site.function:
            return frame
        frame = frame.f_back
    return None


def present_value(part: str, owner: Any, key: Any, frame: FrameType | None) -> Any:
    """Return the present value of the location, read without running code of the program, or NO_VALUE."""
    if part == "attr":
        return safe_inspection.attribute(owner, key)
    if part == "cell":
        return NO_VALUE if frame is None else lookup(frame, str(key))
    return _item(owner, key) if part == "item" and type(key) in PLAIN_KEYS else NO_VALUE


def _item(owner: Any, key: Any) -> Any:
    if issubclass(type(owner), dict):
        return dict.get(owner, key, NO_VALUE)
    if issubclass(type(owner), list) and type(key) is int and 0 <= key < list.__len__(owner):
        try:
            return list.__getitem__(owner, key)
        except IndexError:      # another thread has shortened the list
            return NO_VALUE
    return NO_VALUE


def lookup(frame: FrameType, name: str) -> Any:
    """Return the value of a variable of a frame of the current thread, or NO_VALUE."""
    if frame.f_code.co_flags & OPTIMIZED and name in frame.f_locals:     # in a class body f_locals may run user code
        return frame.f_locals[name]
    return frame.f_globals.get(name, NO_VALUE)


def _receiver(frame: FrameType | None, site: SiteInfo) -> Any:
    """Return the object whose getter or setter a site calls: `pool` of `pool.size`; NO_VALUE if that is not known."""
    if frame is None or site.op not in {"reads", "writes"}:
        return NO_VALUE
    name, *parts = site.text.split(".")[:-1] or [""]
    found = lookup(frame, name)
    for part in parts:
        found = NO_VALUE if found is NO_VALUE else safe_inspection.attribute(found, part)
    return found


def _attribute_of(receiver: Any, owner: Any) -> str:
    """Return the name of the attribute that holds an object, or ""."""
    names = [name for name, item in safe_inspection.attributes(receiver) if item is owner]
    return f"{safe_inspection.class_name(type(receiver))}.{names[0]}" if names else ""
