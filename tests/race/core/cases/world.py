"""What a core is driven with in its cases: handmade sites, real threads, and an order that the core cannot see.

A case is a function `case_*(w)` of a World.  Threads take turns through pipes, which no core tracks, so a case decides
what happens when while the core knows of no order but the one that the case makes.
"""

from __future__ import annotations

import _thread
import os
import select
import threading

from gilscope.toolkit.race.site import SiteInfo, all_sites, register_sites
from gilscope.toolkit.race.terms import AccessKind, Flag

TURN_SECONDS = 600.0


class Pipe:
    """A signal that makes no order for any core."""

    def __init__(self):
        self.out, self.into = os.pipe()

    def tell(self, byte=b"."):
        os.write(self.into, byte)

    def wait(self):
        ready, _, _ = select.select([self.out], [], [], TURN_SECONDS)
        assert ready, "a thread of the case hangs"
        return os.read(self.out, 1)

    def close(self):
        os.close(self.out)
        os.close(self.into)


class Actor:
    """One real thread that runs a function, or a generator function turn by turn."""

    def __init__(self, world, body, clock):
        self.world = world
        self.body = body
        self.clock = clock
        self.turn, self.done = Pipe(), Pipe()
        self.finished = False
        self.error = None
        self.uid = None
        self.end = None
        _thread.start_new_thread(self.run, ())

    def run(self):
        self.turn.wait()
        self.uid = self.world.core.thread_begin(None, self.clock)
        try:
            steps = self.body()
            for _ in steps if hasattr(steps, "send") else ():
                self.done.tell()
                self.turn.wait()
        except BaseException as error:  # noqa: BLE001  a case's anything
            self.error = error
        self.end = self.world.core.thread_end()
        self.finished = True
        self.done.tell()

    def step(self):
        self.turn.tell()
        self.done.wait()
        if self.error is not None:
            raise self.error

    def close(self):
        while not self.finished:
            self.step()
        self.turn.close()
        self.done.close()


class World:
    """One started core, its ops as attributes, and the conflicts told so far."""

    def __init__(self, core):
        self.core = core
        self.conflicts = []
        self.names = {}          # site number -> name
        self.sites = {}          # name -> site number
        self.methods = {}        # method name -> site, for cases that need one of each
        self.final = False       # what the handler answers
        core.start(self.hear)

    def hear(self, conflict):
        self.conflicts.append(conflict)
        return self.final

    def __getattr__(self, name):
        try:
            return self.core.ops[name]
        except KeyError:
            raise AttributeError(name) from None

    def site(self, name, key="", flags=Flag.NONE, partners=(), op="attr_read", line=1):
        """Return a site; partners are names of sites made before."""
        first = len(all_sites)
        info = SiteInfo("case.py", line, 0, line, 1, "case", op, key, name, flags,
                        tuple(self.sites[partner] - first for partner in partners), None)
        number = register_sites([info])
        self.names[number] = name
        self.sites[name] = number
        return self.core.site(all_sites[number], number)

    def run(self, *bodies, order=None):
        """Run each body in a thread of its own, by turns; by default each as a whole, in the order given.

        All threads start after now and are unordered with each other; at the end all are joined.
        """
        clock = self.core.snapshot()
        actors = {chr(ord("a") + index): Actor(self, body, clock) for index, body in enumerate(bodies)}
        try:
            for name in order or sorted(actors):
                actors[name].step()
        finally:
            for actor in actors.values():
                actor.close()
        for actor in actors.values():
            self.core.join(actor.end)
        return actors

    @staticmethod
    def lock():
        """Return a lock that the core sees."""
        return threading.Lock()

    def told(self):
        """Return the conflicts so far as (sort, part, key, first, second); sides as "site KIND" or "read>site KIND"."""
        found = [(sort, part, key, self.side(first), self.side(second))
                 for sort, _, part, key, first, second, _ in self.conflicts]
        self.conflicts.clear()
        return found

    def side(self, access):
        _, site, kind, _, _, span = access
        text = f"{self.names[site]} {AccessKind(kind).name}"
        return text if span == -1 else f"{self.names[span]}>{text}"

    def pairs(self):
        """Return the set of (sort, first, second)."""
        return {(sort, first, second) for sort, _, _, first, second in self.told()}

    def clean(self):
        found = self.told()
        assert not found, found


class Thing:
    """An object with attributes."""

    shared = 0

    def __init__(self):
        self.n = 0


def kit(w):
    """Return one site of each item op, by name."""
    names = {"get": "item_read", "set": "item_write", "del": "item_delete", "in": "contains", "each": "iterate",
             "len": "size", "next": "advance"}
    return {name: w.site(name, op=op) for name, op in names.items()}


def call(w, container, name, *args):
    """Call a container's method through its op, at a site named after it."""
    if name not in w.methods:
        w.methods[name] = w.site(name if name not in w.sites else f"{name}()", name, op="method")
    return getattr(w.method(container, w.methods[name]), name)(*args)
