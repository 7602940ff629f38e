"""What races are called: their kinds, and how grave each is."""

from __future__ import annotations

LOST = "lost update"
CHECK = "check-then-act"
TORN = "torn multi-step write"
ITERATION = "iteration during change"
PLAIN = "unsynchronised read/write"
KINDS = (LOST, CHECK, TORN, ITERATION, PLAIN)      # the gravest first
RACE, VIOLATION, NOTE = "race", "atomicity violation", "note"
