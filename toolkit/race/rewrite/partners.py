"""The reads that a write depends on, its *partners*: its value comes from them, or a test of them decides about it.

Locations are compared by their text in the source (`self.balance`, `counts[word]`), so a partner is a candidate: at run
time the core checks that read and write touched the same location.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gilscope.toolkit.race.terms import Flag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.race.rewrite.function_summaries import ModuleSummary
    from gilscope.toolkit.race.rewrite.site_collector import PartnerPlan, Role

class NamedLocation(NamedTuple):
    """A location as the source names it."""

    kind: str          # attr, name, item, size, call
    base: str          # the object, container or receiver; "" for names and for functions of the module
    key: str | None    # attribute, variable, item or function; None: the container as a whole


class Read(NamedTuple):
    """A read that a later write may depend on."""

    role: Role
    place: NamedLocation
    held: tuple[object, ...] = ()     # the `with` statements around it, and locks acquired before it


Reads = frozenset[Read]
NOTHING: Reads = frozenset()


class Paths:
    """Names of expressions, with the locals that are aliases of another expression replaced by it."""

    def __init__(self, mangled: Callable[[str], str]) -> None:
        self.mangled = mangled
        self.aliases: dict[str, str] = {}

    def of(self, node: ast.AST | None) -> str | None:
        """Return the expression's name, or None if it does not simply name a location."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self.of(node.value)
            return base and f"{base}.{self.mangled(node.attr)}"
        if isinstance(node, ast.Subscript):
            base, key = self.of(node.value), self.key(node.slice)
            return base and key and f"{base}[{key}]"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type" and node.args:
            return f"type({self.of(node.args[0])})"
        if isinstance(node, ast.NamedExpr):
            return self.of(node.value)
        return None

    def key(self, node: ast.AST) -> str | None:  # noqa: PLR0911  a list of cases
        """Return the text of a key: a named expression, constants, tuples and arithmetic of those."""
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, ast.Tuple):
            return self._joined(", ", node.elts)
        if isinstance(node, ast.BinOp):
            return self._joined(f" {type(node.op).__name__} ", [node.left, node.right])
        if isinstance(node, ast.UnaryOp):
            operand = self.key(node.operand)
            return operand and f"{type(node.op).__name__} {operand}"
        if isinstance(node, ast.Call):
            return self._joined(", ", [node.func, *node.args]) if not node.keywords else None
        if isinstance(node, ast.Slice):
            return self._joined(":", [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)])
        if isinstance(node, ast.JoinedStr | ast.Attribute | ast.Subscript | ast.Name):
            return ast.unparse(node) if isinstance(node, ast.JoinedStr) else self.of(node)
        return None

    def _joined(self, separator: str, nodes: list[ast.expr]) -> str | None:
        texts = [self.key(node) for node in nodes]
        return "(" + separator.join(text for text in texts if text) + ")" if all(texts) else None

    def bind(self, name: str, value: ast.AST | None) -> None:
        """Record an assignment to a local: it becomes an alias of the value, and aliases that mention it end."""
        text = self.of(value) if isinstance(value, ast.Attribute | ast.Subscript) else None
        self.aliases = {alias: path for alias, path in self.aliases.items()
                        if alias != name and not _mentions(path, name)}
        if text and not _mentions(text, name):
            self.aliases[name] = text

    def keep_common(self, others: Mapping[str, str]) -> None:
        """Drop the aliases that another branch does not share."""
        self.aliases = {name: path for name, path in self.aliases.items() if others.get(name) == path}


def tested_attribute(node: ast.Compare) -> tuple[ast.expr, str] | None:
    """Return object and attribute of `"name" in thing.__dict__`, None of other comparisons."""
    names = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.In | ast.NotIn) or not (
            isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)):
        return None
    if isinstance(names, ast.Attribute) and names.attr == "__dict__":
        return names.value, node.left.value
    if isinstance(names, ast.Call) and isinstance(names.func, ast.Name) and names.func.id == "vars" and names.args:
        return names.args[0], node.left.value
    return None


def _mentions(path: str, name: str) -> bool:
    """Return True if the path depends on a variable of that name; `self.name` does not."""
    return name in path and re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", path) is not None


class FlowFrame(Protocol):
    """State of the frame in which a write happens."""

    guards: list[Reads]              # reads of the tests that led here, oldest first
    held: tuple[object, ...]         # `with` statements around, locks acquired before
    taken: dict[NamedLocation, Read]         # places whose whole value a local has


class PartnerFinder:
    """Finder of the partners of writes; records them in the plan."""

    def __init__(self, plan: PartnerPlan, summary: ModuleSummary) -> None:
        self.plan = plan
        self.summary = summary

    def act(self, frame: FlowFrame, role: Role, place: NamedLocation, value: Reads, *, resets: bool = False,
            clears: bool = False) -> None:
        """Record a write with the reads that it depends on, if there are any.

        Args:
            frame: The state of the frame.
            role: The op that reports the write.
            place: The location that is written.
            value: The reads that its value, key or arguments depend on.
            resets: An empty or zero value is stored.
            clears: The container is emptied.
        """
        if place.kind != "name" and (place.kind != "call" or self._may_change(place)):
            self.plan.changed.add(last_identifier(place.base))
        partners = {read.role for read in value if self._feeds(read, place)}
        taken = frame.taken.pop(place, None)
        if taken and (resets or clears):
            partners.add(taken.role)    # correct whatever an earlier guard found: it takes the present value
            inside = all(region in frame.held for region in taken.held)
            flags = Flag.VALUE | (Flag.RECHECKED if inside else Flag.NONE)
        else:
            guards, superseded = self._guards(frame, place)
            # After `if self.n == old: self.n = new` under a lock nothing depends on the old read any more.
            compared = [group & superseded for group in frame.guards if guards & group]
            partners -= {read.role for reads in compared for read in reads}
            flags = Flag.VALUE if partners else Flag.NONE
            if guards:
                partners |= {read.role for read in guards}
                inside = any(_shared(read, frame) < max(_shared(one, frame) for one in guards) for read in superseded)
                flags |= Flag.GUARD | (Flag.RECHECKED if inside else Flag.NONE)
        partners.discard(role)
        if role.name == "call" and flags & Flag.GUARD:
            partners = {partner for partner in partners if partner.node is not role.node}
        if partners:
            self.plan.add(role, tuple(sorted(partners, key=_position)), flags)

    def _guards(self, frame: FlowFrame, place: NamedLocation) -> tuple[set[Read], set[Read]]:
        """Return the tested reads that the write depends on, and those that they supersede.

        For each location the latest test counts, and in it the reads nearest to the write: a second test inside of a
        lock supersedes the one outside.
        """
        found: dict[NamedLocation, set[Read]] = {}
        superseded: set[Read] = set()
        for group in reversed(frame.guards):
            fresh: dict[NamedLocation, set[Read]] = {}
            for read in group:
                if self._matches(read, place):
                    fresh.setdefault(read.place, set()).add(read)
            for tested, reads in fresh.items():
                nearest = max(_shared(read, frame) for read in reads)
                kept = found.setdefault(tested, {read for read in reads if _shared(read, frame) == nearest})
                superseded |= reads - kept
        return set().union(*found.values()), superseded

    def _may_change(self, call: NamedLocation) -> bool:
        """Return True if a call may change its receiver."""
        known = self.summary.effects(call.key or "", method=call.base != "")
        return known is None or bool(known.writes)

    def _feeds(self, read: Read, place: NamedLocation) -> bool:
        """Return True if a value that depends on the read makes the write depend on it."""
        if read.place.kind == "size":       # a length that becomes a key, say; not a snapshot, which is as it was
            node = read.role.node
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"):
                return False
        return self._matches(read, place)

    def _matches(self, read: Read, place: NamedLocation) -> bool:
        """Return True if the read and the write may be of the same location."""
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

    def _set_by(self, seen: NamedLocation, call: NamedLocation) -> bool:
        """Return True if a call may write the location of the read."""
        known = self.summary.effects(call.key or "", method=call.base != "")
        if seen.kind != "call":
            return known is not None and _below(seen, call) and _identifier(seen) in known.writes
        if seen.base != call.base:
            return False
        getter = self.summary.effects(seen.key or "", method=seen.base != "")
        if known and getter:
            return bool(getter.reads & known.writes)
        return known is None and getter is None and seen.key != call.key

    def _got_by(self, call: NamedLocation, place: NamedLocation) -> bool:
        """Return True if a call may read the location of the write."""
        known = self.summary.effects(call.key or "", method=call.base != "")
        return known is not None and _below(place, call) and _identifier(place) in known.reads


def _shared(read: Read, frame: FlowFrame) -> int:
    """Return the number of regions that are around both the write and the read."""
    return sum(1 for region in read.held if region in frame.held)


def _below(place: NamedLocation, call: NamedLocation) -> bool:
    """Return True if the location belongs to the call's receiver."""
    if call.base == "" or place.kind == "name":
        return True
    return place.base == call.base or place.base.startswith((f"{call.base}.", f"{call.base}["))


def _identifier(place: NamedLocation) -> str:
    """Return the last identifier: `d` for an item of `self.d`."""
    if place.kind == "attr":
        return place.key or ""
    return last_identifier(place.base)


def last_identifier(path: str) -> str:
    """Return `d` of `self.d` and `self.d[key]`."""
    return path.partition("[")[0].rpartition(".")[2]


def _is_sequence_method(place: NamedLocation, read: Read) -> bool:
    """Return True if the write has no single key, so that any membership test of the container may guard it."""
    return place.kind == "size" or (place.key is not None and read.place.key is None)


def _position(role: Role) -> tuple[int, int, str]:
    return getattr(role.node, "lineno", 0), getattr(role.node, "col_offset", 0), role.name
