"""Name a lock as its author would: `Bank.lock`, `global lock in jobs.py`.

The text of the line that first acquired it says most; who refers to the lock says the rest.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gilscope.toolkit.race.conflicts.naming.variables import FIRST_ARGUMENTS, enclosing_class, unmangled

if TYPE_CHECKING:
    from typing import Any

    from gilscope.toolkit.race.conflicts.naming.variables import Naming
    from gilscope.toolkit.race.conflicts.source_context import Sources
    from gilscope.toolkit.race.core import Core, Place
    from gilscope.toolkit.race.spool import Plain

OWN_CODE = ("threading.py", "queue.py", "_base.py", "thread.py")   # the standard library acquires on others' behalf


class LockNames:
    """Names the locks of one process, each once."""

    def __init__(self, core: Core, sources: Sources, naming: Naming) -> None:
        self._core = core
        self._sources = sources
        self._naming = naming
        self._known: dict[int, dict[str, Plain]] = {}

    def describe(self, uid: int) -> dict[str, Plain]:
        """Return the lock's number, name and the place where it was first acquired."""
        found = self._known.get(uid)
        if found is None:
            stack, lock = self._core.lock_origin(uid)
            found = self._known.setdefault(uid, {
                "uid": uid, "name": self._name(stack, lock),
                "at": [[self._sources.path(path), line, function] for path, line, function in stack[:1]],
            })
        return found

    def _name(self, stack: tuple[Place, ...], lock: Any) -> str:
        place = next((place for place in stack if not place[0].endswith(OWN_CODE)), None)
        text = "" if place is None else self._written(place)
        if place is not None and text.partition(".")[0] in FIRST_ARGUMENTS and (cls := enclosing_class(place[2])):
            return f"{cls}.{unmangled(text.partition('.')[2], cls)}" if "." in text else cls
        paths = () if place is None else (place[0],)
        if lock is not None and (name := self._naming.referrers.name(lock, paths)):
            return _as_global(name, paths)
        if text:
            return text
        return "a lock" if place is None else f"the lock first taken in {place[2]}"

    def _written(self, place: Place) -> str:
        """Return the expression that the line acquires, "" when it does not say one."""
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


def _as_global(name: str, paths: tuple[str, ...]) -> str:
    if name.isidentifier() and paths:
        file = paths[0].replace("\\", "/").rpartition("/")[2]
        return f"global {name} in {file}"
    return name
