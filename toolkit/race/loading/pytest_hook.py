"""Rewrite test modules after pytest has rewritten their assertions.

Pytest loads test modules, conftest.py and plugins by a hook of its own, which the import hook never sees.
"""

from __future__ import annotations

import _thread
import ast
import builtins
from pathlib import Path
from typing import TYPE_CHECKING

from _pytest._version import version

from gilscope.toolkit.race.loading import cache
from gilscope.toolkit.race.loading.hook import compile_and_cache, link

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

    from _pytest.config import Config

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.loading.hook import IsProject, OnLoad


def install(rewrite: Any, core: Core, is_project: IsProject,
            on_load: OnLoad | None = None) -> Callable[[], None]:
    """Rewrite the modules that pytest's hook loads from now on; return the function that undoes it.

    Args:
        rewrite: The module `_pytest.assertion.rewrite`; pytest is not completely imported yet.
        core: The core that makes the site objects.
        is_project: Returns True for name and source path of a module to rewrite.
        on_load: Called with the path of a module, and why only pytest rewrites it, or "".
    """
    loader = rewrite.AssertionRewritingHook
    original = loader.exec_module

    def exec_module(self: Any, module: ModuleType) -> None:
        path: str = module.__spec__.origin   # type: ignore[assignment, union-attr]  # pytest's finder sets it
        code = None
        if is_project(module.__name__, path):
            code = _code(path, core, self.config, on_load)
        if code is None:
            original(self, module)
            return
        self._rewritten_names[module.__name__] = Path(path)
        # Otherwise `exec` uses this module's builtins, which differ if this package was copied under another name.
        module.__dict__.setdefault("__builtins__", vars(builtins))
        if _thread._count() == 0:   # noqa: SLF001  as in the import hook
            exec(code, module.__dict__)  # noqa: S102  this is a loader
            return
        with core.busy():
            exec(code, module.__dict__)  # noqa: S102  this is a loader

    # Pytest omits frames of its own hook from collection errors, by their file name.
    exec_module.__code__ = exec_module.__code__.replace(co_filename=rewrite.__file__)
    loader.exec_module = exec_module

    def undo() -> None:
        loader.exec_module = original

    return undo


def _code(path: str, core: Core, config: Config, on_load: OnLoad | None) -> CodeType | None:
    """Return the code, rewritten twice and linked, or None if only pytest can rewrite it."""
    level = core.mute()
    try:
        source = Path(path).read_bytes()
        # Pytest's rewriting depends on these.
        flavour = f"pytest {version} {config.getini('enable_assertion_pass_hook')}"
        entry = cache.load(source, path, flavour)
        if entry is None:
            entry = compile_and_cache(source, path, on_load, flavour=flavour,
                                      tree=lambda: _explaining(source, path, config))
        if entry and on_load:
            on_load(path, "")
        return link(*entry, core) if entry else None
    except OSError:
        return None   # pytest reports it with a better message
    finally:
        core.restore(level)


def _explaining(source: bytes, path: str, config: Config) -> ast.Module:
    """Return the tree of a module with pytest's rewritten assertions."""
    from _pytest.assertion import rewrite

    tree = ast.parse(source, filename=path)
    rewrite.rewrite_asserts(tree, source, path, config)
    return tree
