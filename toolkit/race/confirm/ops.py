"""The checked process in a confirming run: rewritten code calls ops that pause.

Each op does what the program wrote, and passes the access to the watchers of its place.  If the native operation
follows the op, as in `attr_read(x, S).a`, a proxy stands between, so that a pause fits between reading and writing.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from functools import partial

from gilscope.toolkit.race.confirm.watch import (
    ANSWERS,
    ANY,
    ITERATES,
    PAUSES,
    LineEvents,
    PausingSite,
    RaceWatcher,
    RecentAccesses,
)
from gilscope.toolkit.race.effects import CHANGING, CONTAINER_METHODS
from gilscope.toolkit.race.loading import hook
from gilscope.toolkit.race.site import OPS
from gilscope.toolkit.race.spool import append
from gilscope.toolkit.race.sync.patch_on_import import ImportPatcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from types import CodeType
    from typing import Any

    from gilscope.toolkit.race.confirm.watch import Place, Plan
    from gilscope.toolkit.race.site import SiteInfo

MOST_LINES_WRITTEN = 10_000  # per run: a loop that loses every update must not fill the disk
VIEWS: tuple[type[Any], ...] = (type({}.keys()), type({}.values()), type({}.items()))
STRUCTURED: tuple[type[Any], ...] = (dict, list, set, deque, *VIEWS)
READING = CONTAINER_METHODS - CHANGING


class AttributeProxy:
    """Proxy of an object of the program during one attribute access."""

    __slots__ = ("_object", "_recent", "_site")

    def __init__(self, owner: Any, site: PausingSite, recent: RecentAccesses) -> None:
        object.__setattr__(self, "_object", owner)
        object.__setattr__(self, "_site", site)
        object.__setattr__(self, "_recent", recent)

    def __getattribute__(self, name: str) -> Any:
        owner, site, recent = _parts(self)
        site.arrive(owner, name)
        value = getattr(owner, name)
        recent.add_read(owner, name)
        site.after_read(owner, name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        owner, site, recent = _parts(self)
        site.before_write(owner, name)
        setattr(owner, name, value)
        recent.add_write(owner, name)
        site.after_write(owner, name)

    def __delattr__(self, name: str) -> None:
        owner, site, recent = _parts(self)
        site.before_write(owner, name)
        delattr(owner, name)
        recent.add_write(owner, name)
        site.after_write(owner, name)


def _parts(proxy: AttributeProxy) -> tuple[Any, PausingSite, RecentAccesses]:
    get = object.__getattribute__
    return get(proxy, "_object"), get(proxy, "_site"), get(proxy, "_recent")


class ItemProxy:
    """Proxy of a container of the program during accesses to its items."""

    __slots__ = ("_ops", "_owner", "_site")

    def __init__(self, owner: Any, site: PausingSite, ops: PausingOps) -> None:
        self._owner = owner
        self._site = site
        self._ops = ops

    def __getitem__(self, key: Any) -> Any:
        return self._ops.item_read(self._owner, key, self._site)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ops.item_write(value, self._owner, key, self._site)

    def __delitem__(self, key: Any) -> None:
        self._ops.item_delete(self._owner, key, self._site)


class MethodProxy:
    """Proxy of a container of the program during one method call."""

    __slots__ = ("_owner", "_recent", "_site")

    def __init__(self, owner: Any, site: PausingSite, recent: RecentAccesses) -> None:
        self._owner = owner
        self._site = site
        self._recent = recent

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            (self._recent.add_read if name in READING else self._recent.add_write)(self._owner, ANY)
            self._site.before_write(self._owner, ANY)
            try:
                return method(*arguments, **named)
            finally:
                self._site.after_read(self._owner, ANY)
                self._site.after_write(self._owner, ANY)

        return call


class PausingOps:
    """The ops by the names in `gilscope.toolkit.race.site.OPS`; each does what the program wrote."""

    def __init__(self) -> None:
        self.recent = RecentAccesses()

    def attr_read(self, owner: Any, site: PausingSite) -> Any:
        return AttributeProxy(owner, site, self.recent) if site.watchers or self.recent.enabled else owner

    attr_write = attr_update = attr_proxy = attr_read

    def attr_store(self, value: Any, owner: Any, site: PausingSite) -> None:
        setattr(AttributeProxy(owner, site, self.recent), site.key, value)

    def locking(self, lock: Any, _method: str = "") -> Any:
        return lock

    def item_read(self, owner: Any, key: Any, site: PausingSite) -> Any:
        site.arrive(owner, key)
        try:
            return owner[key]
        finally:   # also for a missing item: what follows may depend on that
            self.recent.add_read(owner, key)
            site.after_read(owner, key)

    def item_write(self, value: Any, owner: Any, key: Any, site: PausingSite) -> None:
        site.before_write(owner, key)
        owner[key] = value
        self.recent.add_write(owner, key)
        site.after_write(owner, key)

    def item_delete(self, owner: Any, key: Any, site: PausingSite) -> None:
        site.before_write(owner, key)
        try:
            del owner[key]
        finally:
            self.recent.add_write(owner, key)
            site.after_write(owner, key)

    def item_proxy(self, owner: Any, site: PausingSite) -> Any:
        return ItemProxy(owner, site, self) if site.watchers or self.recent.enabled else owner

    def global_read(self, value: Any, site: PausingSite) -> Any:
        return self._variable_read(value, _globals_of_caller(), site)

    def global_write(self, value: Any, site: PausingSite) -> Any:
        return self._variable_write(value, _globals_of_caller(), site)

    def global_update(self, value: Any, site: PausingSite) -> Any:
        return self._variable_update(value, _globals_of_caller(), site)

    def cell_read(self, value: Any, token: object, site: PausingSite) -> Any:
        return self._variable_read(value, token, site)

    def cell_write(self, value: Any, token: object, site: PausingSite) -> Any:
        return self._variable_write(value, token, site)

    def cell_update(self, value: Any, token: object, site: PausingSite) -> Any:
        return self._variable_update(value, token, site)

    def _variable_read(self, value: Any, owner: Any, site: PausingSite) -> Any:
        site.arrive(owner, site.key)
        self.recent.add_read(owner, site.key)
        site.after_read(owner, site.key)
        return value

    def _variable_write(self, value: Any, owner: Any, site: PausingSite) -> Any:
        site.before_write(owner, site.key)
        self.recent.add_write(owner, site.key)
        site.after_write(owner, site.key)
        return value

    def _variable_update(self, value: Any, owner: Any, site: PausingSite) -> Any:
        # The old value is on the stack already and the new one is stored right after: this pause is between them.
        site.arrive(owner, site.key)
        site.after_read(owner, site.key)
        self.recent.add_write(owner, site.key)
        site.after_write(owner, site.key)
        return value

    def method(self, owner: Any, site: PausingSite) -> Any:
        return MethodProxy(owner, site, self.recent) if site.watchers or self.recent.enabled else owner

    def contains(self, key: Any, owner: Any, site: PausingSite) -> bool:
        site.arrive(owner, key)
        found = key in owner
        self.recent.add_read(owner, key)
        site.after_read(owner, key)
        return found

    def size(self, owner: Any, site: PausingSite) -> Any:
        site.arrive(owner, ANY)
        self.recent.add_read(owner, ANY)
        site.after_read(owner, ANY)
        return owner

    def iterate(self, owner: Any, site: PausingSite) -> Any:
        if not site.watchers or not isinstance(owner, STRUCTURED):
            self.advance(owner, site)
            return owner
        site.arrive(owner, ANY)
        return _followed(owner, site)

    def advance(self, owner: Any, site: PausingSite) -> Any:
        if site.watchers:
            site.before_write(owner, ANY)
            site.after_write(owner, ANY)
        return owner

    def dynamic(self, function: Callable[..., Any], site: PausingSite, *arguments: Any) -> Any:
        if not site.watchers or len(arguments) < 2:  # object and name
            return function(*arguments)
        place = arguments[:2]
        if function in {setattr, delattr}:
            site.before_write(*place)
            result = function(*arguments)
            site.after_write(*place)
            return result
        site.arrive(*place)
        result = function(*arguments)
        site.after_read(*place)
        return result

    def enter(self, site: PausingSite) -> None:
        """Do nothing: a span that was left open is replaced by the next."""

    def begin(self) -> int:
        return self.recent.position()

    def reads(self, position: int, value: Any, site: PausingSite) -> Any:
        if site.watchers:
            for owner, key in self.recent.since(position, wrote=False)[-1:]:
                site.after_read(owner, key)
        return value

    def writes(self, position: int, value: Any, site: PausingSite) -> Any:
        if site.watchers:
            for owner, key in self.recent.since(position, wrote=True):
                site.after_write(owner, key)
        return value

    def token(self) -> object:
        return object()

    def locals_(self, found: Any) -> Any:
        if isinstance(found, dict):
            return {name: value for name, value in found.items() if not name.startswith("gilscope:")}
        return [name for name in found if not name.startswith("gilscope:")]

    slice_ = slice


def _globals_of_caller() -> dict[str, Any]:
    return sys._getframe(2).f_globals  # noqa: SLF001  the only way to a caller's globals


def _followed(owner: Any, site: PausingSite) -> Iterator[Any]:
    """Iterate over the container and pause between items for a change of its structure."""
    watchers = [watcher for watcher, roles in site.watchers if roles & ITERATES]
    structure = gc.get_referents(owner)[0] if isinstance(owner, VIEWS) else owner
    for watcher in watchers:
        watcher.begin_span((structure, ANY))
    try:
        for item in owner:
            for watcher in watchers:
                watcher.between_items()
            yield item
    finally:
        for watcher in watchers:
            watcher.end_span()


class PausingCore:
    """The part of a core's interface that the import hook needs; keeps no vector clocks and finds no races.

    Args:
        plans: One for each race that is not confirmed yet.
        attempt: The number of the try, from 0; it selects the length of a pause.
        report: Called with a race's ident and the number of its confirmations whenever that changes.
    """

    name = "pausing"

    def __init__(self, plans: Sequence[Plan], attempt: int, report: Callable[[str, int], None]) -> None:
        pause = PAUSES[attempt % len(PAUSES)]
        self._watchers: dict[Place, list[tuple[RaceWatcher, int]]] = {}
        own = PausingOps()
        for ident, question, key, places in plans:
            # The key in a report may be shortened, so every other try watches all items.
            watcher = RaceWatcher(question, "" if attempt % 2 else key, pause, partial(report, ident))
            for (path, line, column, op), roles in places:
                self._watchers.setdefault((path, line, column, op), []).append((watcher, roles))
                own.recent.enabled |= op in {"reads", "writes"}
        self.ops = {name: getattr(own, name) for name in OPS}
        self._lines = LineEvents()

    def site(self, info: SiteInfo, _number: int) -> PausingSite:
        """Return the object that replaces a site's marker in rewritten code."""
        place = (os.path.abspath(info.path), info.line, info.column, info.op)
        return PausingSite(info.key, self._watchers.get(place, ()), self._lines)

    def mute(self) -> int:
        """Do nothing: no access is recorded in this run."""
        return 0

    def restore(self, level: int) -> None:
        """Do nothing: no access is recorded in this run."""

    def busy(self) -> AbstractContextManager[None]:
        """Do nothing: no access is recorded in this run."""
        from contextlib import nullcontext
        return nullcontext()


class ConfirmingSession:
    """Rewrites the program with ops that pause; replaces the `RaceSession` in a confirming run."""

    def __init__(self, spool: str, plans: Sequence[Plan], attempt: int, include: Sequence[str],
                 root: str) -> None:
        self._file = spool + "/" + ANSWERS
        self._left = MOST_LINES_WRITTEN
        self._include = include
        self._root = root
        self.core = PausingCore(plans, attempt, self._report)

    def start(self) -> None:
        """Rewrite the program from now on, including its test modules if it is pytest."""
        self._is_project = hook.project_filter(self._root, self._include)
        hook.install(self.core, self._is_project)  # type: ignore[arg-type]  # the hook needs only this part of a core
        ImportPatcher({"_pytest.assertion.rewrite": self._rewrite_tests}).start()

    def compile(self, source: bytes, path: str) -> CodeType:
        """Return the entry script's code, rewritten."""
        return hook.code_for_script(path, source, self.core)  # type: ignore[arg-type]  # the hook needs only this part of a core

    def _rewrite_tests(self, module: Any) -> None:
        from gilscope.toolkit.race.loading import pytest_hook
        pytest_hook.install(module, self.core, self._is_project)  # type: ignore[arg-type]  # the hook needs only this part of a core

    def _report(self, ident: str, times: int) -> None:
        if self._left > 0:
            self._left -= 1
            try:
                append(self._file, f"{ident} {times}\n".encode())
            except OSError:
                return   # the program must go on
