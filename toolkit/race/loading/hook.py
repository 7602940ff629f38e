"""Rewrite project code when it is imported, and leave all other code unchanged.

Imports here delay the start of the program, so the rewriter is imported only for a module that is not in the cache.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import os
from importlib.machinery import SourceFileLoader

from gilscope.toolkit.own_files import InstalledProject, split_installed
from gilscope.toolkit.race.loading import cache
from gilscope.toolkit.race.site import MARKER, OP_PREFIX, all_sites, register_sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType
    from typing import Any

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.site import SiteInfo
    IsProject = Callable[[str, str], bool]      # name, path of the source
    OnLoad = Callable[[str, str], None]     # path, and why the module is not rewritten, or ""

def link(code: CodeType, infos: Sequence[SiteInfo], core: Core) -> CodeType:
    """Return the code with the core's site objects in place of the rewriter's markers."""
    if not infos:
        return code
    first = register_sites(infos)
    site, known = core.site, all_sites
    return _linked(code, [site(known[number], number) for number in range(first, first + len(infos))])


def _linked(code: CodeType, sites: list[object]) -> CodeType:
    kind = type(code)
    constants: list[object] = []
    changed = False
    for constant in code.co_consts:
        if type(constant) is tuple and len(constant) == 2 and constant[0] == MARKER:  # mark and index
            constants.append(sites[constant[1]])
        elif type(constant) is kind:
            constants.append(_linked(constant, sites))
        else:
            constants.append(constant)
            continue
        changed = True
    return code.replace(co_consts=tuple(constants)) if changed else code


_FROZEN = "<frozen importlib._bootstrap_external>"   # tracebacks omit frames of this file name
_OURS = os.path.abspath(__file__).rpartition("race")[0]   # toolkit


def project_filter(root: str = "", include: Sequence[str] = (), matched: set[str] | None = None) -> IsProject:
    """Return the predicate for project code: not of the standard library, other installed packages or gilscope itself.

    Args:
        root: The folder whose project is project code in site-packages, too; "" for none.
        include: Globs of names of modules that are project code wherever they are.
        matched: The globs that matched are added to it.
    """
    included = _matcher(include, set() if matched is None else matched)
    library, ours = _folder(os.path.dirname(os.__file__)), _folder(_OURS)
    installed = InstalledProject(root) if root else None

    def is_project(name: str, path: str) -> bool:
        path = os.path.realpath(path)
        if path.startswith(ours):
            return False
        if included(name):
            return True
        if split_installed(path)[0]:
            return installed is not None and installed.has_file(path)
        return not path.startswith(library)

    return is_project


def install(core: Core, is_project: IsProject, on_load: OnLoad | None = None) -> Callable[[], None]:
    """Put the core's ops into builtins and rewrite project code from now on; return the function that undoes it.

    Args:
        core: The core that provides the ops.
        is_project: Returns True for name and source path of a module to rewrite, see `project_filter`.
        on_load: Called with the path of a module, and why it is not rewritten, or "" if it is.
    """
    remove_ops = put_ops(core)
    loader: Any = SourceFileLoader.__mro__[2]      # importlib's SourceLoader, which has the methods
    original_get, original_exec = loader.get_code, SourceFileLoader.exec_module

    def get_code(self: Any, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        level = core.mute()   # what the predicate imports
        own = is_project(fullname, path)
        core.restore(level)
        if not own or type(self).source_to_code is not loader.source_to_code:
            return original_get(self, fullname)     # type: ignore[no-any-return]  # importlib is untyped here
        try:
            source = self.get_data(path)
        except OSError:
            return original_get(self, fullname)     # type: ignore[no-any-return]  # importlib is untyped here
        return rewritten(source, path, core, on_load) or original_get(self, fullname)

    def exec_module(self: Any, module: ModuleType) -> None:
        # An import of a finished module uses no lock, so there is no edge from the module's body to the importer.
        if _thread._count() == 0:   # noqa: SLF001  the number of other threads
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
        remove_ops()

    return undo


def code_for_script(path: str, source: bytes, core: Core, on_load: OnLoad | None = None) -> CodeType:
    """Return the entry script's code, rewritten and linked, or unchanged if it cannot be rewritten.

    Raises:
        SyntaxError: The source is not valid Python.
        ValueError: The source contains null bytes.
    """
    code = rewritten(source, path, core, on_load, warn_again=True)
    return code or compile(source, path, "exec", dont_inherit=True)


def rewritten(source: bytes, path: str, core: Core, on_load: OnLoad | None, *,
              warn_again: bool = False) -> CodeType | None:
    """Return rewritten and linked code, from the cache or compiled now; None if the source must run unchanged.

    Args:
        source: The bytes of the file.
        path: The file name of the code.
        core: The core that makes the site objects.
        on_load: Called with the path, and why a valid source is not rewritten, or "" if it is.
        warn_again: Warn of dubious syntax on each start, as Python does for scripts, which it never caches.
    """
    me = _thread.get_ident()
    if me in _building:
        if on_load:
            on_load(path, "the rewriter itself was importing it")
        return None
    level = core.mute()
    try:
        entry = cache.load(source, path)
        if entry is None:
            _building.add(me)
            entry = compile_and_cache(source, path, on_load, warn_again=warn_again)
        if entry and on_load:
            on_load(path, "")
        return entry and link(*entry, core)
    finally:
        _building.discard(me)
        core.restore(level)


_building: set[int] = set()     # idents of threads in the rewriter: what they import meanwhile, it imports


def compile_and_cache(source: bytes, path: str, on_load: OnLoad | None, *, warn_again: bool = False,
                      tree: Callable[[], ast.Module] | None = None, flavour: str = "") -> cache.Entry | None:
    """Return linkable code and its sites, and save both in the cache; None if the source must run as it is.

    Args:
        source: The bytes of the file.
        path: The file name of the code.
        on_load: Called with path and reason for a source that is valid but cannot be rewritten.
        warn_again: Warn of dubious syntax on later starts as well, so do not cache a source with warnings.
        tree: Returns the tree to rewrite if it is not simply the source's.
        flavour: How that tree was made: part of the cache key.
    """
    import warnings

    from gilscope.toolkit.race.rewrite import compile_rewritten

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            entry = compile_rewritten(tree() if tree else source, path)
        if caught:      # again, for the program to see them through its own filters
            entry = compile_rewritten(tree() if tree else source, path)
    except (SyntaxError, UnicodeDecodeError):
        return None     # Python's own compilation reports it with a better message
    except Exception as error:  # noqa: BLE001  the program must run even if the rewriter has a bug
        if on_load:
            on_load(path, f"{type(error).__name__}: {error}")
        return None
    if not (caught and warn_again):
        cache.save(source, path, *entry, flavour=flavour)
    return entry


def put_ops(core: Core) -> Callable[[], None]:
    """Put the core's ops into builtins, also for the last finalizers; return the function that removes them."""
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

    if core.name != "C":    # a confirming run's ops: functions lose their modules' globals before the last finalizers
        atexit.register(retire)
    return undo


def _listing(names: dict[str, Any]) -> Callable[[], list[str]]:
    """Return a `__dir__` for builtins that hides the ops from programs."""
    return lambda: [name for name in names if not name.startswith("gilscope:") and name != "__dir__"]


def _builtins() -> list[dict[str, Any]]:
    """Return the dict of builtins, and the copy that it is restored from at exit before the last finalizers run."""
    import gc
    now = vars(builtins)
    at_exit = next((one for one in gc.get_objects() if type(one) is dict and one is not now
                    and one.get("__name__") == "builtins" and "__import__" in one), None)
    return [now] if at_exit is None else [now, at_exit]


def _matcher(patterns: Sequence[str], matched: set[str]) -> Callable[[str], bool]:
    if not patterns:
        return lambda _name: False
    from fnmatch import fnmatchcase

    def matches(name: str) -> bool:
        found = [pattern for pattern in patterns if fnmatchcase(name, pattern)]
        matched.update(found)
        return bool(found)

    return matches


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")
