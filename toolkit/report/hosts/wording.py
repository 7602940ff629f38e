"""What hosts say together, in words."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from gilscope.toolkit.report.wording import SHOWN_SPREAD, list_text, percent_text, ratio_number
from gilscope.toolkit.stats.words import MARGIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gilscope.toolkit.report.hosts.agreement import OverHosts
    from gilscope.toolkit.stats.hosts.pooling import Pooled

NAMED = 4   # hosts by name; of more their number, with the first ones

ALL = ("all hosts: the mean over hosts like these with its 95 % interval (random effects: how far hosts differ is in "
       "it). Words go by wider intervals, as all cells are to hold at once: two or three hosts seldom tell.")
SPREAD = ("spread: the standard deviation of the hosts' own ratios, without their noise; none: noise explains how they "
          "differ.")
NEXT = "next host: between what one more such host will measure, with 95 %."
HOLDS = "holds: the word that most hosts say by themselves, and who says another."
EACH = (f"On each host: ± where its interval is wider than {SHOWN_SPREAD * 100:g} %; none: no gain beyond "
        f"{MARGIN * 100:g} %.")


def names_text(names: Sequence[str]) -> str:
    """Return "host-1 and host-3", of many "12 hosts (host-1, host-3, host-4, ...)"."""
    if len(names) <= NAMED:
        return list_text(names)
    return f"{len(names)} hosts ({', '.join(names[:NAMED - 1])}, ...)"


def holds_text(over: OverHosts) -> str:
    """Return "faster on 3 of 4; same on host-3; starved on host-5"."""
    parts = [words_text(over)] if over.by else []
    reasons: dict[str, list[str]] = {}
    for host, why in over.lacking.items():
        reasons.setdefault(absent_text(why), []).append(host)
    return "; ".join([*parts, *(f"{why} on {names_text(hosts)}" for why, hosts in reasons.items())])


def absent_text(why: str) -> str:
    """Return why a host has no ratio in a word or two; a whole sentence has no room in a table."""
    return why if ":" not in why else "not compared"


def words_text(over: OverHosts) -> str:
    """Return the words of the hosts that have a number: "faster on 3 of 5; same on host-3; 1 cannot tell"."""
    found = over.agreement
    others = [f"{len(hosts)} cannot tell" if word == "cannot tell" else f"{word} on {names_text(hosts)}"
              for word, hosts in found.others.items()]
    return "; ".join([f"{found.word} on {len(found.holds)} of {found.hosts}", *others])


def spread_text(pooled: Pooled) -> str:
    """Return by how much hosts differ: "4 %", "none"."""
    return percent_text(pooled.between, digits=0) if pooled.effects.between else "none"


def next_text(pooled: Pooled) -> str:
    """Return where the next host lies: "[1.70, 2.05]"; nothing where anything is possible."""
    lo, hi = pooled.next_host
    return f"[{ratio_number(lo)}, {ratio_number(hi)}]" if lo > 0 and isfinite(hi) else ""


def changing_text(hosts_by_word: Mapping[str, Collection[str]]) -> str:
    """Return "faster on host-1 and host-2, slower on host-3"."""
    return ", ".join(f"{word} on {names_text([*hosts])}" for word, hosts in hosts_by_word.items())
