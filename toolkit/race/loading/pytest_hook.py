"""Test modules are rewritten twice: by pytest, so that a failing assertion explains itself, then by us.

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
from gilscope.toolkit.race.loading.compile_rewritten import build
from gilscope.toolkit.race.loading.link import link

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

    from _pytest.config import Config

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.loading.hook import IsProject, Report


def install(rewrite: Any, core: Core, is_project: IsProject,
            on_unrewritable: Report | None = None) -> Callable[[], None]:
    """Rewrite what pytest's hook loads from now on; return what undoes it.

    Args:
        rewrite: The module `_pytest.assertion.rewrite`.  Pytest is in the middle of importing itself.
        core: What the sites are linked with.
        is_project: Whether the module of this name and source path is rewritten.
        on_unrewritable: Called with the path and the reason for a module that is left to pytest alone.
    """
    loader = rewrite.AssertionRewritingHook
    original = loader.exec_module

    def exec_module(self: Any, module: ModuleType) -> None:
        path: str = module.__spec__.origin   # type: ignore[assignment, union-attr]  # pytest's own finder has set it
        code = None
        if is_project(module.__name__, path):
            code = _code(path, core, self.config, on_unrewritable)
        if code is None:
            original(self, module)
            return
        self._rewritten_names[module.__name__] = Path(path)
        # Else `exec` gives it those of this module, which are not the usual ones where ours goes by another name.
        module.__dict__.setdefault("__builtins__", vars(builtins))
        if _thread._count() == 0:   # noqa: SLF001  as in the import hook
            exec(code, module.__dict__)  # noqa: S102  what a loader does
            return
        with core.busy():
            exec(code, module.__dict__)  # noqa: S102  likewise

    # Pytest leaves frames of its own hook out of a collection's errors by their file.
    exec_module.__code__ = exec_module.__code__.replace(co_filename=rewrite.__file__)
    loader.exec_module = exec_module

    def undo() -> None:
        loader.exec_module = original

    return undo


def _code(path: str, core: Core, config: Config, on_unrewritable: Report | None) -> CodeType | None:
    """Return the code, rewritten twice and linked; None when pytest has to do without us."""
    level = core.mute()
    try:
        source = Path(path).read_bytes()
        # What pytest makes of a test depends on these.
        flavour = f"pytest {version} {config.getini('enable_assertion_pass_hook')}"
        entry = cache.load(source, path, flavour)
        if entry is None:
            entry = build(source, path, on_unrewritable, tree=lambda: _explaining(source, path, config),
                          flavour=flavour)
        return link(*entry, core) if entry else None
    except OSError:
        return None   # pytest says it better
    finally:
        core.restore(level)


def _explaining(source: bytes, path: str, config: Config) -> ast.Module:
    """Return the tree of a module whose assertions explain themselves."""
    from _pytest.assertion import rewrite

    tree = ast.parse(source, filename=path)
    rewrite.rewrite_asserts(tree, source, path, config)
    return tree
