"""Make rewritten code for the import hook and for pytest, and put it into the cache."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from gilscope.toolkit.race.loading import cache
from gilscope.toolkit.race.rewrite import compile_rewritten

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from types import CodeType

    from gilscope.toolkit.race.site import SiteInfo

    Tree = Callable[[], ast.Module]


def build(source: bytes, path: str, on_unrewritable: Callable[[str, str], None] | None, *, warn_again: bool = False,
          tree: Tree | None = None, flavour: str = "") -> tuple[CodeType, list[SiteInfo]] | None:
    """Return linkable code and its sites, or None when the source must run as it is.

    Args:
        source: What the file holds.
        path: What the code's file name will be.
        on_unrewritable: Told of a source that is valid and cannot be rewritten.
        warn_again: Whether later starts have to warn of dubious syntax, too.
        tree: Makes the tree to rewrite, where that is not simply the source's.
        flavour: How such a tree was made, for the cache.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            entry = compile_rewritten(tree() if tree else source, path)
        if caught:      # now for the program to see, by its own filters
            entry = compile_rewritten(tree() if tree else source, path)
    except (SyntaxError, UnicodeDecodeError):
        return None     # Python says it better
    except Exception as error:  # noqa: BLE001  the program must run, whatever is wrong with our rewriting
        if on_unrewritable:
            on_unrewritable(path, f"{type(error).__name__}: {error}")
        return None
    if not (caught and warn_again):
        cache.save(source, path, *entry, flavour=flavour)
    return entry
