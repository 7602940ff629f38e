"""A migration's steps as a file that a team keeps, and what moved since it was written the last time.  Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gilscope.toolkit.escaping import in_markdown, visible
from gilscope.toolkit.evaluate.views.answer import BOXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.evaluate.evaluation import Evaluation

_STEP = re.compile(r"- \[.\] \*\*(.+?)\*\* \((done|open|not known|not needed)\)")
_DATE = re.compile(r"\bon (\d{4}-\d\d-\d\d)\b")


@dataclass(frozen=True, slots=True)
class Earlier:
    """The states of the steps in a plan that was written before."""

    date: str = ""                                             # "2026-11-22"; "": there was none
    states: Mapping[str, str] = field(default_factory=dict)    # by the step's name


def read(text: str) -> Earlier:
    """Return the states in the text of a plan; empty if it is no plan."""
    date = _DATE.search(text)
    return Earlier(date=date[1] if date else "", states=dict(_STEP.findall(text)))


def moved(found: Evaluation, before: Earlier) -> list[str]:
    """Return the steps whose state has changed, one line each."""
    return [f"{each.name}: {before.states[each.name]} -> {each.state}" for each in found.plan
            if before.states.get(each.name, each.state) != each.state]


def since(found: Evaluation, before: Earlier) -> Iterator[str]:
    """Yield what moved since the plan was written before, or that nothing did; nothing where there was no plan."""
    if before.states:
        yield from (f"since {before.date or 'last time'}: {each}"
                    for each in moved(found, before) or ["nothing has moved"])


def markdown(found: Evaluation, before: Earlier, date: str) -> str:
    """Return the plan as Markdown, with what moved since `before`."""
    target = found.answer.target if found.answer else ""
    done = sum(each.state in {"done", "not needed"} for each in found.plan)
    boxes = {state: "[x]" if box in {"[x]", "[-]"} else "[ ]" for state, box in BOXES.items()}
    lines = [
        f"# {_plain(found.project.name)} without a GIL", "",
        f"{done} of {len(found.plan)} steps to {target} are done, as `gilscope evaluate` saw it on {date}.",
        "Run it with `--plan` again to see what moved.", "",
        *(f"- {boxes[each.state]} **{each.name}** ({each.state}): {_plain(each.says)}" for each in found.plan)]
    if told := list(since(found, before)):
        lines += ["", "## What moved", "", *(f"- {_plain(each)}" for each in told)]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return in_markdown(visible(text))
