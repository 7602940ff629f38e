"""Import every distribution of an environment as far as it can be imported with the GIL, several at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.children.at_once import at_once
from gilscope.toolkit.evaluate.packages.ask.imports import Wanted, import_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gilscope.toolkit.evaluate.packages.facts import Distribution, ImportRun
    from gilscope.toolkit.evaluate.packages.install.scratch import Scratch

MOST_SWEPT = 150   # modules of a package; the first ones show what the others would


@dataclass(frozen=True, slots=True)
class Import:
    """What was imported of a distribution, and what came of it."""

    level: int         # an index into what `levels` gives
    wanted: Wanted
    run: ImportRun


def import_each(
    scratch: Scratch, names: Sequence[str], known: Mapping[str, Import], *, limit: float,
) -> dict[str, Import]:
    """Return what came of importing distributions, by name, each in a process of its own.

    Args:
        scratch: Where they are installed; what is not there is left out.
        names: Of distributions.
        known: What was imported on the twin: the same is imported here.
        limit: Seconds for each.
    """
    by_name = {each.name: each for each in scratch.distributions}

    def run(name: str) -> Import:
        chosen = list(enumerate(levels(by_name[name])))
        if name in known:
            chosen = [chosen[known[name].level]]
        done = []
        for level, wanted in chosen:
            run = import_run(scratch.python, wanted, limit=limit, memo=scratch.answers)
            done.append(Import(level, wanted, run))
            if run.kind == "done":
                return done[-1]
        return done[0]

    return all_at_once(run, [name for name in names if name in by_name])


def levels(found: Distribution) -> tuple[Wanted, ...]:
    """Return what to import: everything, and less where that breaks.

    A module inside may start a server, or want to be loaded by another one only: what breaks with the GIL, too, is
    left out on every build.
    """
    whole = Wanted(roots=found.modules, sweep=found.inner[:MOST_SWEPT] if found.extensions else (),
                   extensions=tuple(name for name, _ in found.extensions))
    return whole, replace(whole, sweep=()), Wanted(roots=whole.roots)


def all_at_once[T](function: Callable[[str], T], names: Sequence[str]) -> dict[str, T]:
    """Return what `function` returns for each name, as many at once as there are cores; Ctrl-C ends what it started."""
    return dict(zip(names, at_once(function, names, usable_cores()), strict=True))
