"""Which reads are the partners of a write: those that its value comes from, and those that a test before it made."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

from gilscope.toolkit.race.site import Flag

if TYPE_CHECKING:
    from gilscope.toolkit.race.rewrite.data_flow.locations import Place, Read, Reads
    from gilscope.toolkit.race.rewrite.function_summaries import Summary
    from gilscope.toolkit.race.rewrite.sites import Plan, Role


class Frame(Protocol):
    """What has to be known of the frame in which a write happens."""

    guards: list[Reads]              # what brought us here, oldest first
    held: tuple[object, ...]         # `with` statements around, locks acquired before
    taken: dict[Place, Read]         # places whose whole value a local has


class Spans:
    """Writes the plan."""

    def __init__(self, plan: Plan, summary: Summary) -> None:
        self.plan = plan
        self.summary = summary

    def act(self, frame: Frame, role: Role, place: Place, value: Reads, *, resets: bool = False,
            clears: bool = False) -> None:
        """Record a write with the reads that it depends on, if there are any.

        Args:
            frame: Where it happens.
            role: Which op reports it.
            place: What is written.
            value: What its value, key or arguments depend on.
            resets: An empty or zero value is stored.
            clears: The container is emptied.
        """
        partners = {read.role for read in value if self._feeds(read, place)}
        flags = Flag.VALUE if partners else Flag.NONE
        taken = frame.taken.pop(place, None)
        if taken and (resets or clears):
            partners.add(taken.role)    # right whatever a guard outside saw: it takes what is there
            flags |= Flag.VALUE | Flag.RECHECKED
        else:
            guards, outdone = self._guards(frame, place)
            # After `if self.n == old: self.n = new` under a lock nothing depends on the old read any more.
            compared = [group & outdone for group in frame.guards if guards & group]
            partners -= {read.role for reads in compared for read in reads}
            flags = Flag.VALUE if partners else Flag.NONE
            if guards:
                partners |= {read.role for read in guards}
                inside = any(_shared(read, frame) < max(_shared(one, frame) for one in guards) for read in outdone)
                flags |= Flag.GUARD | (Flag.RECHECKED if inside else Flag.NONE)
        partners.discard(role)
        if role.name == "call" and flags & Flag.GUARD:
            partners = {partner for partner in partners if partner.node is not role.node}
        if partners:
            self.plan.add(role, tuple(sorted(partners, key=_position)), flags)

    def _guards(self, frame: Frame, place: Place) -> tuple[set[Read], set[Read]]:
        """Return the tested reads that the write depends on, and those that they outdo.

        For each place the latest test decides, and in it the reads nearest to the write: a test that looks again inside
        of a lock makes one outside idle.
        """
        found: dict[Place, set[Read]] = {}
        outdone: set[Read] = set()
        for group in reversed(frame.guards):
            fresh: dict[Place, set[Read]] = {}
            for read in group:
                if self._matches(read, place):
                    fresh.setdefault(read.place, set()).add(read)
            for tested, reads in fresh.items():
                nearest = max(_shared(read, frame) for read in reads)
                kept = found.setdefault(tested, {read for read in reads if _shared(read, frame) == nearest})
                outdone |= reads - kept
        return set().union(*found.values()), outdone

    def _feeds(self, read: Read, place: Place) -> bool:
        """Return whether a value that depends on the read makes the write depend on it."""
        if read.place.kind == "size":       # a length that becomes a key, say; not a snapshot, which is as it was
            node = read.role.node
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"):
                return False
        return self._matches(read, place)

    def _matches(self, read: Read, place: Place) -> bool:
        """Return whether the read may be of what the write changes."""
        seen = read.place
        if place.kind == "call":
            return self._set_by(seen, place)
        if seen.kind == "call":
            return self._got_by(seen, place)
        if place.kind in ("attr", "name"):
            return seen == place
        if seen.base != place.base or seen.kind not in ("item", "size"):
            return False
        if seen.kind == "size" or seen.key == place.key:
            return True
        return isinstance(read.role.node, ast.Compare) and _is_sequence_method(place, read)

    def _set_by(self, seen: Place, call: Place) -> bool:
        """Return whether a call may write what was read."""
        known = self.summary.effects(call.key or "", method=call.base != "")
        if seen.kind != "call":
            return known is not None and _below(seen, call) and _identifier(seen) in known.writes
        if seen.base != call.base:
            return False
        getter = self.summary.effects(seen.key or "", method=seen.base != "")
        if known and getter:
            return bool(getter.reads & known.writes)
        return known is None and getter is None and seen.key != call.key

    def _got_by(self, call: Place, place: Place) -> bool:
        """Return whether a call may read what is written."""
        known = self.summary.effects(call.key or "", method=call.base != "")
        return known is not None and _below(place, call) and _identifier(place) in known.reads


def _shared(read: Read, frame: Frame) -> int:
    """Return how many of the regions around the write are also around the read."""
    return sum(1 for region in read.held if region in frame.held)


def _below(place: Place, call: Place) -> bool:
    """Return whether the place belongs to the call's receiver."""
    if call.base == "" or place.kind == "name":
        return True
    return place.base == call.base or place.base.startswith((f"{call.base}.", f"{call.base}["))


def _identifier(place: Place) -> str:
    """Return the last identifier: `d` for an item of `self.d`."""
    if place.kind == "attr":
        return place.key or ""
    base = place.base.partition("[")[0]
    return base.rpartition(".")[2]


def _is_sequence_method(place: Place, read: Read) -> bool:
    """Return whether the write is not to one key, so that any membership test of the container may guard it."""
    return place.kind == "size" or (place.key is not None and read.place.key is None)


def _position(role: Role) -> tuple[int, int, str]:
    return getattr(role.node, "lineno", 0), getattr(role.node, "col_offset", 0), role.name
