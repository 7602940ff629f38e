"""The sections of an evaluation, in the order in which they are measured and in which their facts count.

One more section of `gilscope evaluate` is one more module here, with a `Section` in SECTIONS: `measure` measures it,
`facts` says what follows, and `codes` what each code of a fact means.  Verdict, screen, table, plan and JSON show the
facts without a change; the JSON schema lists the same codes.
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
    Section(name="own extension modules", facts=own_extensions.facts, codes=own_extensions.CODES),
    Section(name="packages", facts=packages.facts, codes=packages.CODES),
    Section(name="the GIL forced off", facts=forced.facts, codes=forced.CODES),
    Section(name="races", facts=races.facts, codes=races.CODES),
    Section(name="code that nothing watches", facts=unwatched.facts, codes=unwatched.CODES),
    Section(name="tests at once", facts=tests_at_once.facts, codes=tests_at_once.CODES),
    Section(name="tests", facts=tests.facts, codes=tests.CODES),
    Section(name="cost", facts=cost.facts, codes=cost.CODES),
    Section(name="gain", facts=gain.facts, codes=gain.CODES),
    Section(name="contention", facts=contention.facts, codes=contention.CODES),
    Section(name="interpreters and processes", facts=interpreters.facts, codes=interpreters.CODES),
    Section(name="upkeep", facts=upkeep.facts, codes=upkeep.CODES),
)
