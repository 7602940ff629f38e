"""Rewrite project code as it is imported, and leave everything else alone.

The program's start pays for what is imported here, so the rewriter itself comes only when a module is not in the cache.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import os
from importlib.machinery import SourceFileLoader

from gilscope.toolkit.race.loading import cache
from gilscope.toolkit.race.loading.link import link
from gilscope.toolkit.race.site import OP_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType
    from typing import Any

    from gilscope.toolkit.race.core import Core

    IsProject = Callable[[str, str], bool]      # name, path of the source
    Report = Callable[[str, str], None]         # path, reason

_FROZEN = "<frozen importlib._bootstrap_external>"   # tracebacks leave the import system's frames out by this name
_OURS = os.path.abspath(__file__).rpartition("race")[0]   # toolkit


def project_filter(roots: Sequence[str] = (), include: Sequence[str] = ()) -> IsProject:
    """Return what tells project code: neither standard library, installed packages, nor gilscope itself.

    Args:
        roots: Folders whose code counts although an installed package lies there; package folders below do not.
        include: Globs of module names that count wherever they are.
    """
    inside = tuple(_folder(root) for root in roots)
    included = _matcher(include)
    library, ours = _folder(os.path.dirname(os.__file__)), _folder(_OURS)

    def is_project(name: str, path: str) -> bool:
        path = os.path.realpath(path)
        if path.startswith(ours):
            return False
        if included(name):
            return True
        root = max((root for root in inside if path.startswith(root)), key=len, default=None)
        if root is None and path.startswith(library):
            return False
        below = path[len(root) - 1:] if root else path
        return not any(f"{os.sep}{part}{os.sep}" in below for part in ("site-packages", "dist-packages"))

    return is_project


def install(core: Core, is_project: IsProject, on_unrewritable: Report | None = None) -> Callable[[], None]:
    """Put the core's operations into builtins and rewrite project code from now on; return the undoing.

    Args:
        core: What the operations come from.
        is_project: Whether the module of this name and source path is rewritten, see `project_filter`.
        on_unrewritable: Called with the path and the reason for a module that runs as it is.
    """
    take_ops_back = put_ops(core)
    loader: Any = SourceFileLoader.__mro__[2]      # importlib's SourceLoader, which has the methods
    original_get, original_exec = loader.get_code, SourceFileLoader.exec_module

    def get_code(self: Any, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        if not is_project(fullname, path) or type(self).source_to_code is not loader.source_to_code:
            return original_get(self, fullname)     # type: ignore[no-any-return]  # importlib is untyped here
        try:
            source = self.get_data(path)
        except OSError:
            return original_get(self, fullname)     # type: ignore[no-any-return]  # importlib is untyped here
        return rewritten(source, path, core, on_unrewritable) or original_get(self, fullname)

    def exec_module(self: Any, module: ModuleType) -> None:
        # An import that finds a module ready waits for nobody, so nothing would order the body's accesses with others.
        if _thread._count() == 0:   # noqa: SLF001  the one who knows
            return original_exec(self, module)
        with core.busy():
            return original_exec(self, module)

    for function in (get_code, exec_module):
        function.__code__ = function.__code__.replace(co_filename=_FROZEN)
    loader.get_code = get_code
    loader.exec_module = exec_module

    def undo() -> None:
        loader.get_code = original_get
        del loader.exec_module
        take_ops_back()

    return undo


def code_for_script(path: str, source: bytes, core: Core, on_unrewritable: Report | None = None) -> CodeType:
    """Return the entry script's code, rewritten and linked; as it is when it cannot be rewritten.

    Raises:
        SyntaxError: As compiling it raises; ValueError likewise for null bytes.
    """
    code = rewritten(source, path, core, on_unrewritable, warn_again=True)
    return code or compile(source, path, "exec", dont_inherit=True)


def rewritten(source: bytes, path: str, core: Core, on_unrewritable: Report | None, *,
              warn_again: bool = False) -> CodeType | None:
    """Return rewritten and linked code, from the cache or made now; None when the source must run as it is.

    Args:
        source: What the file holds.
        path: What the code's file name will be.
        core: What the sites are linked with.
        on_unrewritable: Told of a source that is valid and cannot be rewritten.
        warn_again: Whether each start warns of dubious syntax, as it does for scripts, which Python never caches.
    """
    me = _thread.get_ident()
    if me in _building:
        if on_unrewritable:
            on_unrewritable(path, "the rewriter itself was importing it")
        return None
    level = core.mute()
    try:
        entry = cache.load(source, path)
        if entry is None:
            _building.add(me)
            from gilscope.toolkit.race.loading.compile_rewritten import build
            entry = build(source, path, on_unrewritable, warn_again=warn_again)
        return entry and link(*entry, core)
    finally:
        _building.discard(me)
        core.restore(level)


_building: set[int] = set()     # threads that rewrite; what they import meanwhile is for the rewriter


def put_ops(core: Core) -> Callable[[], None]:
    """Let rewritten code find the core's operations, also in the last finalizers; return what takes them away."""
    named = {OP_PREFIX + name: op for name, op in core.ops.items()}
    places = _builtins()
    for place in places:
        place.update(named, __dir__=_listing(places[0]))

    def retire() -> None:
        from gilscope.toolkit.race.loading.shutdown_ops import operations
        for place in places:
            place.update((OP_PREFIX + name, op) for name, op in operations().items() if OP_PREFIX + name in place)

    def undo() -> None:
        atexit.unregister(retire)
        for place in places:
            for name in (*named, "__dir__"):
                place.pop(name, None)

    if core.name != "C":    # Python's functions lose their modules' globals before the last finalizers run
        atexit.register(retire)
    return undo


def _listing(names: dict[str, Any]) -> Callable[[], list[str]]:
    """Return the function that `dir(builtins)` asks: programs that look there see what they always see."""
    return lambda: [name for name in names if not name.startswith("gilscope:") and name != "__dir__"]


def _builtins() -> list[dict[str, Any]]:
    """Return the dict of builtins and the copy that it is restored from at exit, before the last finalizers run."""
    import gc
    now = vars(builtins)
    at_exit = next((one for one in gc.get_objects() if type(one) is dict and one is not now
                    and one.get("__name__") == "builtins" and "__import__" in one), None)
    return [now] if at_exit is None else [now, at_exit]


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    if not patterns:
        return lambda _name: False
    from fnmatch import fnmatchcase
    return lambda name: any(fnmatchcase(name, pattern) for pattern in patterns)


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")

