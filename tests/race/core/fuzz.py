"""Random programs of operations.

`python -m tests.race.core.fuzz` reads plans from stdin, one line of JSON each, and answers what the core told.
A plan is a list of [thread, act, number]; each thread is one function, the threads take turns in that order.
"""

from __future__ import annotations

import json
import random
import sys
from collections import deque

from gilscope.toolkit.race._core.build import load
from gilscope.toolkit.race.terms import AccessKind, Flag
from tests.race.core.cases.foreign_locks import Gate
from tests.race.core.cases.world import Thing, World

THREADS = 3
STEPS = 40
CHECK = Flag.SPAN_READ | Flag.TEST
# act -> key, flags, partners, op, statement; {n} is 0 or 1, S the act's site
ATTRIBUTES = {
    "read": ("n", Flag.SPAN_READ, (), "attr_read", "w.attr_read(things[{n}], S).n"),
    "poll": ("n", Flag.POLL, (), "attr_read", "w.attr_read(things[{n}], S).n"),
    "check": ("n", CHECK, (), "attr_read", "w.attr_read(things[{n}], S).n"),
    "plain": ("n", Flag.NONE, (), "attr_write", "w.attr_write(things[{n}], S).n = 1"),
    "write": ("n", Flag.VALUE, ("read",), "attr_write", "w.attr_write(things[{n}], S).n = 1"),
    "constant": ("n", Flag.CONSTANT, (), "attr_write", "w.attr_write(things[{n}], S).n = 1"),
    "recheck": ("n", Flag.GUARD | Flag.RECHECKED, ("check",), "attr_write", "w.attr_write(things[{n}], S).n = 1"),
    "update": ("n", Flag.AUGMENTED, (), "attr_update", "w.attr_update(things[{n}], S).n += 1"),
}
ITEMS = {
    "get": ("", Flag.SPAN_READ, (), "item_read", "if keys[{n}] in table: w.item_read(table, keys[{n}], S)"),
    "in": ("", CHECK, (), "contains", "w.contains(keys[{n}], table, S)"),
    "set": ("", Flag.VALUE, ("get",), "item_write", "w.item_write(1, table, keys[{n}], S)"),
    "insert": ("", Flag.GUARD, ("in",), "item_write", "w.item_write(1, table, keys[{n}], S)"),
    "del": ("", Flag.DELETE, (), "item_delete", "if keys[{n}] in table: w.item_delete(table, keys[{n}], S)"),
    "getter": ("get", Flag.SPAN_READ, (), "method", "w.method(table, S).get(keys[{n}])"),
    "setdefault": ("setdefault", Flag.NONE, (), "method", "w.method(table, S).setdefault(keys[{n}], 0)"),
    "keypop": ("pop", Flag.GUARD, ("in",), "method", "w.method(table, S).pop(keys[{n}], None)"),
    "proxy": ("", Flag.AUGMENTED, (), "item_proxy", "if keys[{n}] in table: w.item_proxy(table, S)[keys[{n}]] += 1"),
    "values": ("", Flag.NONE, (), "iterate", "sum(w.iterate(table.values(), S))"),
}
SEQUENCES = {
    "len": ("", CHECK, (), "size", "len(w.size(lines[{n}], S))"),
    "append": ("append", Flag.GUARD, ("len",), "method", "w.method(lines[{n}], S).append(0)"),
    "pop": ("pop", Flag.GUARD, ("len",), "method", "if len(lines[{n}]) > 1: w.method(lines[{n}], S).pop()"),
    "popleft": ("popleft", Flag.NONE, (), "method", "if len(lines[1]) > 1: w.method(lines[1], S).popleft()"),
    "each": ("", Flag.NONE, (), "iterate", "sum(w.iterate(lines[{n}], S))"),
    "whole": ("list", Flag.NONE, (), "size", "list(w.size(lines[{n}], S))"),
    "index": ("", Flag.NONE, (), "item_read", "w.item_read(lines[{n}], 0, S)"),
    "store": ("", Flag.NONE, (), "item_write", "w.item_write(0, lines[{n}], 0, S)"),
    "sort": ("sort", Flag.NONE, (), "method", "w.method(lines[0], S).sort()"),
    "slice": ("", Flag.NONE, (), "item_read", "w.item_read(lines[0], slice(0, 1), S)"),
}
SETS = {
    "has": ("", CHECK, (), "contains", "w.contains({n}, items, S)"),
    "add": ("add", Flag.GUARD, ("has",), "method", "w.method(items, S).add({n})"),
    "discard": ("discard", Flag.NONE, (), "method", "w.method(items, S).discard({n})"),
    "members": ("", Flag.NONE, (), "iterate", "sum(w.iterate(items, S))"),
}
ORDERS = {
    "lock": "if locks[{n}] not in held and locks[{n}].acquire(blocking=False): held.append(locks[{n}])",
    "unlock": "if locks[{n}] in held: held.remove(locks[{n}]); locks[{n}].release()",
    "relock": "if locks[{n}] in held: locks[{n}].release(); locks[{n}].acquire()",
    "gate": "w.locking(gates[{n}], 'acquire').acquire()",
    "ungate": "w.locking(gates[{n}], 'release').release()",
    "release": "w.core.release(event)",
    "acquire": "w.core.acquire(event)",
    "snapshot": "clocks.append(w.core.snapshot())",
    "join": "if clocks: w.core.join(clocks[-1 - {n} % len(clocks)])",
}
NOTED = ATTRIBUTES | ITEMS | SEQUENCES | SETS


def plan(seed):
    """Return the plan of a seed."""
    chance = random.Random(seed)
    groups = (ATTRIBUTES, ATTRIBUTES, ITEMS, ITEMS, SEQUENCES, SEQUENCES, SETS, ORDERS, ORDERS, ORDERS)
    return [[chance.randrange(THREADS), chance.choice(list(chance.choice(groups))), chance.randrange(2)]
            for _ in range(STEPS)]


def source(steps):
    """Return the source of a thread that takes these steps: one function, so one activation."""
    lines = ["def body():", "    held = []"]
    for _, act, number in steps:
        statement = NOTED[act][-1] if act in NOTED else ORDERS[act]
        lines += [f"    {statement.format(n=number)}".replace("S)", f"S[{act!r}])"), "    yield"]
    return "\n".join([*lines, "    for lock in held: lock.release()"])


def run(core, steps):
    """Return what a core tells of a plan, as sorted texts."""
    w = World(core)
    names = {"w": w, "things": (Thing(), Thing()), "table": {"a": 0}, "keys": "ab", "lines": ([0, 0], deque([0, 0])),
             "items": {0}, "locks": (w.lock(), w.lock()), "gates": (Gate(), Gate()), "event": Thing(), "clocks": [],
             "S": {name: w.site(name, *fields[:4]) for name, fields in NOTED.items()}}
    bodies = []
    for thread in range(THREADS):
        exec(source([step for step in steps if step[0] == thread]), names)
        bodies.append(names["body"])
    try:
        w.run(*bodies, order=[chr(ord("a") + step[0]) for step in steps])
    finally:
        core.stop()
    called = {id(names["things"][0]): "one", id(names["things"][1]): "two", id(names["table"]): "table",
              id(names["lines"][0]): "list", id(names["lines"][1]): "deque", id(names["items"]): "set"}
    return sorted({describe(called[id(conflict[1])], conflict) for conflict in w.conflicts})


def describe(name, conflict):
    """Return a conflict as text.

    An unordered pair as its variable alone: which of several accesses is remembered, and whether a variable that is
    known to be racy is looked at again, is a core's own business.
    So is which side of a pair with a span comes first.
    """
    sort, _, part, key, first, second, _ = conflict
    if sort == "order":
        return f"order: {name} {part} {key!r}"
    sides = [f"{AccessKind(side[2]).name}{'' if side[5] == -1 else ' after its read'}" for side in (first, second)]
    return f"span: {name} {part} {key!r}: {' and '.join(sorted(sides))}"


def main():
    core = load()
    core.track_locks()
    for line in sys.stdin:
        print(json.dumps(run(core, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
