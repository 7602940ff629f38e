"""A core of plain vector clocks, slow and obvious, to judge what the synchronisation layer orders.

Every thread's state stands behind one lock.  `write` notes an access; `raced` says which names two threads touched
without order.
"""

import _thread
import ctypes
import gc
import os
import threading
from contextlib import nullcontext
from weakref import WeakKeyDictionary

raw_lock, RawRLock = _thread.allocate_lock, _thread.RLock


class Timeline:
    def __init__(self, uid, clocks):
        self.uid, self.clocks, self.hard, self.level = uid, dict(clocks), dict(clocks), 0
        self.announced, self.below = False, None
        self.clocks.setdefault(uid, 1)
        self.hard.setdefault(uid, 1)

    def tick(self):
        self.clocks[self.uid] = self.hard[self.uid] = self.clocks[self.uid] + 1

    def join(self, clocks, hard=None):
        for mine, theirs in ((self.clocks, clocks), (self.hard, hard or {})):
            for uid, at in theirs.items():
                mine[uid] = max(mine.get(uid, 0), at)


class FakeCore:
    name = "fake"
    guard = RawRLock()     # one for all, taken around every fork

    def __init__(self):
        self.threads, self.uids, self.variables = {}, iter(range(10**9)), WeakKeyDictionary()
        self.last, self.raced, self.told, self.held = {}, set(), [], []
        self.ops = {"attr_write": lambda owner, _site: owner}

    @staticmethod
    def site(info, number):
        return info, number

    def mine(self):
        ident = _thread.get_ident()
        if ident not in self.threads:
            clocks = {}
            # The collector may run a finalizer here that calls a patched function, and so this one: without the copy,
            # a new thread ends with "dictionary changed size" before it says that it began, and its starter waits on.
            for other in [*self.threads.values()]:
                clocks |= {uid: max(at, clocks.get(uid, 0)) for uid, at in other.clocks.items()}
            self.threads.setdefault(ident, Timeline(next(self.uids), clocks))
        return self.threads[ident]

    # -- what tests ask

    def write(self, name):
        with self.guard:
            me = self.mine()
            for uid, at in self.last.setdefault(name, {}).items():
                if me.clocks.get(uid, 0) < at:
                    self.raced.add(name)
            self.last[name][me.uid] = me.clocks[me.uid]

    # -- Core

    def release(self, owner):
        with self.guard:
            me = self.mine()
            if isinstance(owner, (Tracked, TrackedRecursive)):
                owner.clocks = merged(owner.clocks, me.clocks)
            else:
                clocks, hard = self.variables.get(owner, ({}, {}))
                self.variables[owner] = merged(clocks, me.clocks), merged(hard, me.hard)
            me.tick()

    def acquire(self, owner):
        with self.guard:
            if isinstance(owner, (Tracked, TrackedRecursive)):
                self.mine().join(owner.clocks)
            else:
                self.mine().join(*self.variables.get(owner, ({}, {})))

    def snapshot(self):
        with self.guard:
            me = self.mine()
            clock = dict(me.clocks), dict(me.hard)
            me.tick()
            return clock

    def join(self, clock):
        with self.guard:
            self.mine().join(*clock)

    def mute(self):
        with self.guard:
            me = self.mine()
            me.level += 1
            return me.level - 1

    def restore(self, level):
        with self.guard:
            self.mine().level = level

    def wrap(self, original, before=None, after=None, failed=None, *, muted=True, handles_signal=False):
        return Wrapped(self, original, before, after, failed, muted)

    def patch(self, owner, name, replacement):
        return patch(owner, name, replacement)

    def track_locks(self):
        Tracked.core = TrackedRecursive.core = self
        undos = [self.patch(owner, name, kind) for owner, name, kind in (
            (threading, "Lock", Tracked), (threading, "_allocate_lock", Tracked),
            (threading, "RLock", TrackedRecursive),
            (_thread, "allocate_lock", Tracked))]
        return lambda: [undo() for undo in undos]

    def thread_begin(self, thread, clock):
        with self.guard:
            below = self.threads.pop(_thread.get_ident(), None)
            if clock is not None:
                self.threads[_thread.get_ident()] = Timeline(next(self.uids), {})
                self.mine().join(*clock)
            me = self.mine()
            me.announced = True
            if below is not None and below.announced:
                me.below, me.level = below, below.level
            return me.uid

    def thread_end(self):
        with self.guard:
            clock = self.snapshot()
            below = self.threads.pop(_thread.get_ident()).below
            if below is not None:
                self.threads[_thread.get_ident()] = below
            return clock

    def thread_uid(self):
        with self.guard:
            return self.mine().uid

    def after_fork(self):
        self.threads = {_thread.get_ident(): self.mine()}

    def busy(self):
        return nullcontext()

    def hook_changed(self, *arguments):
        pass


MISSING = object()


def patch(owner, name, replacement):
    """Set an attribute, also of an immutable type; return what sets it back, or None when it cannot be set."""
    before = vars(owner).get(name, MISSING)
    try:
        put(owner, name, replacement)
    except (TypeError, AttributeError):
        return None
    return lambda: put(owner, name, before)


def put(owner, name, value):
    try:
        delattr(owner, name) if value is MISSING else setattr(owner, name, value)
    except TypeError:
        if not isinstance(owner, type):
            raise
        (namespace,) = gc.get_referents(vars(owner))     # the dict behind the proxy
        if value is MISSING:
            del namespace[name]
        else:
            namespace[name] = value
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def merged(left, right):
    return {uid: max(left.get(uid, 0), right.get(uid, 0)) for uid in left.keys() | right.keys()}


class Wrapped:
    """Not a function: frames of it show in tracebacks, unlike those of the C core."""

    def __init__(self, core, original, before, after, failed, muted):
        self.core, self.__wrapped__ = core, original
        self.before, self.after, self.failed, self.muted = before, after, failed, muted
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            if hasattr(original, name):
                setattr(self, name, getattr(original, name))

    def __get__(self, owner, kind=None):
        if owner is None or not hasattr(type(self.__wrapped__), "__get__"):
            return self
        import types
        return types.MethodType(self, owner)

    def __repr__(self):
        return repr(self.__wrapped__)

    def __getattr__(self, name):
        return getattr(self.__wrapped__, name)

    def __call__(self, *arguments, **named):
        level = self.core.mute()
        self.core.restore(level)
        if self.muted and level:
            return self.__wrapped__(*arguments, **named)
        state = self.before(*arguments, **named) if self.before else None
        if self.muted and state is not NotImplemented:
            self.core.mute()
        try:
            result = self.__wrapped__(*arguments, **named)
        except BaseException as error:
            if self.muted:
                self.core.restore(level)
            if self.failed:
                self.failed(state, error, *arguments, **named)
            raise
        if self.muted:
            self.core.restore(level)
        if self.after:
            self.after(state, result, *arguments, **named)
        return result


class Tracked:
    core = None

    def __init__(self):
        self.lock, self.clocks = raw_lock(), {}

    def acquire(self, blocking=True, timeout=-1):  # noqa: FBT002  the lock's signature
        got = self.lock.acquire(blocking, timeout)
        if got:
            with self.core.guard:
                me = self.core.mine()
                if not me.level:
                    me.join(self.clocks)
                    self.core.held.append((me.uid, self))
        return got

    def release(self):
        with self.core.guard:
            me = self.core.mine()
            if not me.level and self.lock.locked():
                self.clocks = dict(me.clocks)
                me.tick()
                if (me.uid, self) in self.core.held:
                    self.core.held.remove((me.uid, self))
            self.lock.release()

    def locked(self):
        return self.lock.locked()

    def _at_fork_reinit(self):
        self.lock._at_fork_reinit()

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *error):
        self.release()


class TrackedRecursive(Tracked):
    def __init__(self):
        self.lock, self.clocks = RawRLock(), {}

    def release(self):
        if not self.lock._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        with self.core.guard:
            me = self.core.mine()
            if not me.level:
                self.clocks = dict(me.clocks)
                me.tick()
        self.lock.release()

    def _is_owned(self):
        return self.lock._is_owned()

    def _recursion_count(self):
        return self.lock._recursion_count()

    def _release_save(self):
        with self.core.guard:
            me = self.core.mine()
            if not me.level:
                self.clocks = dict(me.clocks)
                me.tick()
        return self.lock._release_save()

    def _acquire_restore(self, state):
        self.lock._acquire_restore(state)
        with self.core.guard:
            me = self.core.mine()
            if not me.level:
                me.join(self.clocks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=FakeCore.guard.acquire, after_in_parent=FakeCore.guard.release,
                        after_in_child=FakeCore.guard.release)
