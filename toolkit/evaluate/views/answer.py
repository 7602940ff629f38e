"""The answer in words: the first lines of the screen and of Markdown, and the steps of a plan.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.decision import Gained, Paid
from gilscope.toolkit.evaluate.readings import times_cpu_time
from gilscope.toolkit.evaluate.sections import Memory, Missing, ValueRange
from gilscope.toolkit.report.wording import ratio_number
from gilscope.toolkit.units import MOST_NAMED, counted, few, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.decision import Answer, Blocker, Effort, Step
    from gilscope.toolkit.evaluate.sections import Place

TITLE = "Should we move?"
FORCED = ", with the GIL forced off, which is not safe"
BOXES = {"done": "[x]", "open": "[ ]", "not known": "[?]", "not needed": "[-]"}


def in_short(found: Answer) -> Iterator[str]:
    """Yield the decision, with the gain and the cost as far as they are known."""
    yield _decision(found)
    if isinstance(found.gain, Gained):
        yield f"gain: {_gain(found.gain)}"
    if isinstance(found.cost, Paid):
        yield f"cost: {_cost(found.cost)}"
    yield from (f"without moving: {each}" for each in found.instead)


def _decision(found: Answer) -> str:
    return f"{found.decision.words}: {found.because}{'' if found.because.endswith('.') else '.'}"


def lines(found: Answer) -> Iterator[str]:
    """Yield the decision, then a line for each thing that somebody who decides must know."""
    yield _decision(found)
    if found.failing:
        yield f"tests: {found.failing}"
    yield f"gain: {_gain(found.gain)}"
    yield f"cost: {_cost(found.cost)}"
    match found.cost:
        case Paid(memory=Memory() as of, against=against, forced=forced):
            yield (f"memory: {format_bytes(of.here)}, {format_bytes(of.there)} on {against} "
                   f"({of.process}{FORCED if forced else ""})")
        case _:
            yield "memory: not measured"
    yield from _in_the_way(found.blockers)
    yield f"effort: {_effort(found.effort, found.blockers)}"
    yield from (f"without moving: {each}" for each in found.instead)
    yield f"more: {found.more}"


def _gain(gain: Gained | Missing) -> str:
    if isinstance(gain, Missing):
        return f"not known: {gain.reason}"
    between = "" if gain.lo is None or gain.hi is None else f" [{ratio_number(gain.lo)}, {ratio_number(gain.hi)}]"
    number = f"{ratio_number(gain.ratio)}x{between}"
    threads = f" with {counted(gain.threads, 'thread')}" if gain.threads else ""
    said = {"measured": f"{number} as fast as {gain.against}{threads}, measured",
            "forced off": f"{number} as fast as {gain.against}{threads}, measured{FORCED}",
            "at most": f"at most {number} as fast as {gain.against}: threads wait too little for the GIL for more"}
    return said[gain.how] + _today(gain)


def _today(gain: Gained) -> str:
    """Return the number of simultaneous threads of the workload with the GIL, and how even their work is."""
    if gain.today is None:
        return ""
    even = "" if gain.busiest is None or gain.today < 2 else (  # one thread has it all
        f", the busiest with {gain.busiest * 100:.0f} % of their CPU time")
    return f"; the workload has {counted(gain.today, 'thread')} at once today{even}"


def _cost(cost: Paid | Missing) -> str:
    if isinstance(cost, Missing):
        return f"not known: {cost.reason}"
    wide = "; the interval is twice as wide, as the machine was busy or small" if cost.busy else ""
    times = times_cpu_time(cost.by, ValueRange(value=cost.times, lo=cost.lo, hi=cost.hi), cost.against)
    of = f", {cost.of}" if cost.of else ""
    return f"{times}{of}{wide}{FORCED if cost.forced else ""}"


def _in_the_way(blockers: Sequence[Blocker]) -> Iterator[str]:
    for each in blockers[:MOST_NAMED]:
        who = "we act" if each.who is None else f"the owners of {each.who} act"
        action = f"; {each.action}" if each.action else ""
        yield f"in the way ({who}): {each.what}{action}"
    if len(blockers) > MOST_NAMED:
        yield f"in the way: {len(blockers) - MOST_NAMED} more, see Why"


def _effort(effort: Effort, blockers: Sequence[Blocker]) -> str:
    ours = any(each.who is None and not each.package for each in blockers)
    places = ("where it has to be mended is not known yet" if ours and not effort.beside
              else "no place of ours is known to need a change" if effort.read else "no source of ours was read")
    if effort.places:
        places = (f"{counted(len(effort.places), 'place')} in {counted(len(effort.files), 'file')} of ours "
                  f"to be looked at ({_few_places(effort.places)})")
    beside = (f"; {counted(len(effort.beside), 'place')} in what tests or measures it "
              f"({_few_places(effort.beside)})" if effort.beside else "")
    packages = f"; {counted(len(effort.packages), 'package')} to change" if effort.packages else ""
    return f"{places}{beside}{packages}{f'; {effort.unknown}' if effort.unknown else ''}"


def _few_places(places: Sequence[Place]) -> str:
    return few([*map(str, places)], MOST_NAMED)


def steps(plan: Sequence[Step]) -> Iterator[str]:
    """Yield the steps of a plan, each with its state."""
    yield from (f"{BOXES[each.state]} {each.name}: {_state(each)}" for each in plan)


def _state(step: Step) -> str:
    return step.says if step.state in {"done", "open"} else f"{step.state}: {step.says}"
