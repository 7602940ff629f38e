"""The probes of an evaluation: each yields facts about what was measured.

One more section of `gilscope evaluate` is one more module here, with a `Probe` in PROBES: `run` measures it, and
`facts` says what follows.  Verdict, screen, table, plan and JSON show the facts without a change; the JSON schema
lists their codes.
"""

from __future__ import annotations

from gilscope.toolkit.evaluate.probes import (
    contention,
    cost,
    forced,
    gain,
    hammered,
    interpreters,
    own_extensions,
    packages,
    races,
    tests,
    tests_at_once,
    unwatched,
    upkeep,
)
from gilscope.toolkit.evaluate.probes.probe import Probe

# The reasons of a verdict and the next steps have the same order: the most urgent first.
PROBES: tuple[Probe, ...] = (
    Probe(name="own extension modules", facts=own_extensions.facts),
    Probe(name="packages", facts=packages.facts),
    Probe(name="the GIL forced off", facts=forced.facts),
    hammered.PROBE,
    Probe(name="races", facts=races.facts),
    Probe(name="code that nothing watches", facts=unwatched.facts),
    Probe(name="tests at once", facts=tests_at_once.facts),
    Probe(name="tests", facts=tests.facts),
    Probe(name="cost", facts=cost.facts),
    Probe(name="gain", facts=gain.facts),
    Probe(name="contention", facts=contention.facts),
    Probe(name="interpreters and processes", facts=interpreters.facts),
    Probe(name="upkeep", facts=upkeep.facts),
)
