"""The words for results of several hosts."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from gilscope.toolkit.report.wording import SHOWN_SPREAD, ratio_number
from gilscope.toolkit.stats.verdict import MARGIN, SpeedVerdict
from gilscope.toolkit.units import list_text, percent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gilscope.toolkit.report.hosts.agreement import HostsComparison
    from gilscope.toolkit.stats.hosts import PooledRatio

NAMED = 4   # hosts by name; of more their number, with the first ones

ALL = ("all hosts: the mean over hosts like these with its 95 % interval (random effects, which include the variation "
       "between hosts). Verdicts use wider intervals, which hold for all cells at once: two or three hosts seldom "
       "suffice.")
SPREAD = ("spread: the standard deviation of the hosts' own ratios, without their noise; none: noise suffices to "
          "explain the differences.")
NEXT = "next host: the range of the ratio on one more such host, with 95 % probability."
HOLDS = "holds: the verdict that most hosts reach on their own, and the hosts that reach another."
PERHAPS_ONE = ("Whether these are different machines is not known: if they are one, nothing is shown about another "
               "machine.")
EACH = (f"On each host: ± where its interval is wider than {SHOWN_SPREAD * 100:g} %; none: a gain above "
        f"{MARGIN * 100:g} % is excluded; ?: no verdict, the range that is not excluded.")


def names_text(names: Sequence[str]) -> str:
    """Return "host-1 and host-3", of many "12 hosts (host-1, host-3, host-4, ...)"."""
    if len(names) <= NAMED:
        return list_text(names)
    return f"{len(names)} hosts ({', '.join(names[:NAMED - 1])}, ...)"


def cautions_of_all(by_name: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """Return the cautions of several runs, each once: one that not all have begins with the names of those that do."""
    found: dict[str, list[str]] = {}
    names = []
    for name, texts in by_name:
        names.append(name)
        for text in dict.fromkeys(texts):
            found.setdefault(text, []).append(name)
    return [text if len(those) == len(names) else f"{names_text(those)}: {text}" for text, those in found.items()]


def holds_text(over: HostsComparison) -> str:
    """Return "faster on 3 of 4; same on host-3; starved on host-5"."""
    parts = [words_text(over)] if over.by else []
    reasons: dict[str, list[str]] = {}
    for host, absent in over.lacking.items():
        reasons.setdefault(absent.short, []).append(host)
    return "; ".join([*parts, *(f"{why} on {names_text(hosts)}" for why, hosts in reasons.items())])


def words_text(over: HostsComparison) -> str:
    """Return the words of the hosts that have a number: "faster on 3 of 5; same on host-3; 1 cannot tell"."""
    agreement = over.agreement
    others = [f"{len(hosts)} cannot tell" if word == SpeedVerdict.CANNOT_TELL else f"{word} on {names_text(hosts)}"
              for word, hosts in agreement.others.items()]
    return "; ".join([f"{agreement.word} on {len(agreement.holds)} of {agreement.hosts}", *others])


def spread_text(pooled: PooledRatio) -> str:
    """Return by how much hosts differ: "4 %", "none"."""
    return percent(pooled.between) if pooled.effects.between else "none"


def next_text(pooled: PooledRatio) -> str:
    """Return the prediction interval of the next host: "[1.70, 2.05]"; "" if it excludes nothing."""
    lo, hi = pooled.next_host
    return f"[{ratio_number(lo)}, {ratio_number(hi)}]" if lo > 0 and isfinite(hi) else ""


def changing_text(hosts_by_word: Mapping[str, Collection[str]]) -> str:
    """Return "faster on host-1 and host-2, slower on host-3"."""
    return ", ".join(f"{word} on {names_text([*hosts])}" for word, hosts in hosts_by_word.items())
