"""What would not match between hosts: then a ratio that differs between them may be of that, not of the machine."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.model import Build

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

Facts = dict[str, dict[str, Any]]   # by name of host, what it tells of itself: see `on_host.facts`
BUSY = 0.5   # cores' worth of other programs: enough to take a core from a measured process now and then


def builds_of(facts: Mapping[str, Any]) -> dict[str, Build]:
    """Return the builds of one host by label."""
    return {each["label"]: Build(**each) for each in facts["builds"]}


def common_pair(facts: Facts) -> list[str]:
    """Return the builds that each host measures when none is named; [] where they are not the same on all."""
    pairs = [each["pair"] for each in facts.values()]
    return pairs[0] if pairs and all(each == pairs[0] for each in pairs) else []


def differences(facts: Facts, labels: Collection[str] = ()) -> list[str]:
    """Return what differs between hosts beside the machines themselves, each as a sentence.

    Args:
        facts: What they tell.
        labels: Builds that are measured: others may differ. Empty: any may be.
    """
    return [*_programs(facts), *_builds(facts, labels), *(() if labels else _pairs(facts))]


def _programs(facts: Facts) -> Iterator[str]:
    versions = {
        "gilscope": {name: each["gilscope"] for name, each in facts.items()},
        "the code of gilscope": {name: each["code"][:8] for name, each in facts.items()},
        **{package: {name: each["packages"][package] or "none" for name, each in facts.items()}
           for package in next(iter(facts.values()), {"packages": {}})["packages"]},
    }
    for what, has in versions.items():
        if odd := _odd(has):
            yield f"{what} is not the same: {odd}"


def _builds(facts: Facts, labels: Collection[str]) -> Iterator[str]:
    """Yield how builds of one label differ, and who lacks one that others have."""
    builds = {name: builds_of(each) for name, each in facts.items()}
    for label in sorted({label for each in builds.values() for label in each if not labels or label in labels}):
        having = [name for name, each in builds.items() if label in each]
        if lacking := [name for name in builds if name not in having]:
            yield f"{', '.join(having)} {_has(having)} the build {label}, {', '.join(lacking)} {_has(lacking)} not"
        for name in having[1:]:
            one, other = (dataclasses.replace(builds[each][label], label=each) for each in (having[0], name))
            for note in compare_builds(one, other):
                yield f"build {label}, {note.text}"
            if one.free_threaded != other.free_threaded:
                yield f"build {label} has the GIL on one of {having[0]} and {name} only"


def _has(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _pairs(facts: Facts) -> Iterator[str]:
    if facts and not common_pair(facts):
        told = "; ".join(f"{name}: {', '.join(each['pair']) or 'none'}" for name, each in facts.items())
        yield f"hosts measure different builds unless --builds names them ({told})"


def _odd(has: Mapping[str, str]) -> str:
    """Return who has what, "" where all have the same: "2.10 on host-1, host-3; 2.9 on host-2"."""
    counts = Counter(has.values())
    if len(counts) < 2:  # noqa: PLR2004  two are different
        return ""
    return "; ".join(f"{value} on {', '.join(name for name in has if has[name] == value)}"
                     for value, _ in counts.most_common())
