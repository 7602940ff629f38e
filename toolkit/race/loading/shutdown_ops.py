"""Ops that only do what the program asks: rewritten code calls them while the interpreter shuts down.

The last finalizers run after modules are emptied, so the ops use no globals.  Kept apart, since only ops written in
Python need them, those of a confirming run, and only at exit.
"""

from __future__ import annotations

from gilscope.toolkit.race.site import OPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def operations() -> dict[str, Callable[..., Any]]:
    """Return an op for each name in `site.OPS`."""
    def first(value: Any, *_rest: Any) -> Any:
        return value

    def second(_position: Any, value: Any, *_rest: Any) -> Any:
        return value

    def item_read(container: Any, key: Any, _site: Any) -> Any:
        return container[key]

    def item_write(value: Any, container: Any, key: Any, _site: Any) -> None:
        container[key] = value

    def item_delete(container: Any, key: Any, _site: Any) -> None:
        del container[key]

    def attr_store(value: Any, owner: Any, site: Any) -> None:
        setattr(owner, getattr(site, "key", None) or site.info.key, value)

    def contains(key: Any, container: Any, _site: Any) -> bool:
        return key in container

    def dynamic(function: Callable[..., Any], _site: Any, *arguments: Any) -> Any:
        return function(*arguments)

    def locals_(found: Any) -> Any:
        names = [name for name in found if not name.startswith("gilscope:")]
        return names if isinstance(found, list) else {name: found[name] for name in names}

    return {**dict.fromkeys(OPS, first), "reads": second, "writes": second, "item_read": item_read,
            "item_write": item_write, "item_delete": item_delete, "attr_store": attr_store, "contains": contains,
            "dynamic": dynamic, "locals_": locals_, "begin": int, "token": object, "slice_": slice}
