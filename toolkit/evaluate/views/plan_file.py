"""A migration's steps as a file that a team keeps, and what moved since it was last written.  Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping  # noqa: TC003 - `from_plain` reads the hints
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import parse_json
from gilscope.toolkit.escaping import in_markdown, visible
from gilscope.toolkit.evaluate.decision import State  # noqa: TC001 - `from_plain` reads the hints
from gilscope.toolkit.evaluate.views.answer import BOXES
from gilscope.toolkit.records import from_plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation

# The states are in a comment, which Markdown does not show: people may reword all that they see.
_RECORD = re.compile(r"^<!-- gilscope plan (\{.*\}) -->$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Earlier:
    """The states of the steps in a plan that was written before."""

    date: str = ""                                             # "2026-11-22"; "": there was none
    states: Mapping[str, State] = field(default_factory=dict)   # by the step's key


def read(text: str) -> Earlier:
    """Return the states in the text of a plan; empty if it is no plan.

    Raises:
        ValueError: The comment with the states is damaged.
    """
    record = _RECORD.search(text)
    return from_plain(Earlier, parse_json(record[1]), "its comment") if record else Earlier()


def moved(found: Evaluation, before: Earlier) -> list[str]:
    """Return the steps whose state has changed, one line each."""
    return [f"{each.name}: {before.states[each.key]} -> {each.state}" for each in found.plan
            if before.states.get(each.key, each.state) != each.state]


def since(found: Evaluation, before: Earlier) -> Iterator[str]:
    """Yield the changes since the earlier plan, or that there are none; nothing without an earlier plan."""
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
    record = Earlier(date, {each.key: each.state for each in found.plan})
    lines += ["", f"<!-- gilscope plan {json.dumps(to_plain(record))} -->"]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return in_markdown(visible(text))
