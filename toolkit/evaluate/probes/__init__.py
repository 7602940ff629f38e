"""The sections of an evaluation, in the order in which they are measured and in which their facts count.

One more section of `gilscope evaluate` is one more module here, with a `Section` in SECTIONS: `measure` measures it,
and `facts` says what follows.  Verdict, screen, table, plan and JSON show the facts without a change; the JSON schema
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
from gilscope.toolkit.evaluate.section import Section
from gilscope.toolkit.evaluate.shared_sections import SHARED

# The reasons of a verdict and the next steps have the order of their facts: the most urgent first.
SECTIONS: tuple[Section, ...] = (
    *SHARED,
    hammered.SECTION,   # a fault that was seen comes before the declaration that there is none
    Section(name="own extension modules", facts=own_extensions.facts),
    Section(name="packages", facts=packages.facts),
    Section(name="the GIL forced off", facts=forced.facts),
    Section(name="races", facts=races.facts),
    Section(name="code that nothing watches", facts=unwatched.facts),
    Section(name="tests at once", facts=tests_at_once.facts),
    Section(name="tests", facts=tests.facts),
    Section(name="cost", facts=cost.facts),
    Section(name="gain", facts=gain.facts),
    Section(name="contention", facts=contention.facts),
    Section(name="interpreters and processes", facts=interpreters.facts),
    Section(name="upkeep", facts=upkeep.facts),
)
