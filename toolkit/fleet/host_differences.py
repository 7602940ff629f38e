"""Differences between hosts, beside the machines, that could explain why a ratio differs between them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.model import Build
from gilscope.toolkit.units import inflect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

Facts = dict[str, dict[str, Any]]   # `on_host.facts` by name of host
BUSY = 0.5   # cores' worth of other programs: enough to take a core from a measured process now and then


def builds_of(facts: Mapping[str, Any]) -> dict[str, Build]:
    """Return the builds of one host by label."""
    return {each["label"]: Build(**each) for each in facts["builds"]}


def common_pair(facts: Facts) -> list[str]:
    """Return the builds that hosts measure by default; [] if these differ between hosts."""
    pairs = [each["pair"] for each in facts.values()]
    return pairs[0] if pairs and all(each == pairs[0] for each in pairs) else []


def pair_differences(facts: Facts) -> Iterator[str]:
    """Yield a sentence if the builds that hosts measure by default differ."""
    if facts and not common_pair(facts):
        pairs = "; ".join(f"{name}: {', '.join(each['pair']) or 'none'}" for name, each in facts.items())
        yield f"hosts measure different builds unless --builds names them ({pairs})"


def differences(facts: Facts, labels: Collection[str] = ()) -> list[str]:
    """Return the differences between hosts beside the machines themselves, each as a sentence.

    Args:
        facts: The facts of all hosts.
        labels: The measured builds, to which the check is limited; empty: all builds.
    """
    return [*_programs(facts), *_builds(facts, labels), *(() if labels else pair_differences(facts))]


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
    """Yield the differences between builds of one label, and the hosts that lack a build."""
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
    return inflect(len(names), "has", "have")


def _odd(has: Mapping[str, str]) -> str:
    """Return the hosts with each value, or "" if all have the same: "2.10 on host-1, host-3; 2.9 on host-2"."""
    counts = Counter(has.values())
    if len(counts) < 2:  # two are different
        return ""
    return "; ".join(f"{value} on {', '.join(name for name in has if has[name] == value)}"
                     for value, _ in counts.most_common())
