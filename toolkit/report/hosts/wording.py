"""The words for results of several hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.report.comparison import workload_text
from gilscope.toolkit.report.table_sentences import counts_text
from gilscope.toolkit.report.wording import SHOWN_SPREAD
from gilscope.toolkit.stats.verdict import MARGIN, SpeedVerdict
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.report.hosts.agreement import HostsRatio

NAMED = 4   # hosts by name; of more their number, with the first ones

BEST = "*: the fastest on that host or not told apart from it."
EACH = (f"±: 95 % interval where wider than {SHOWN_SPREAD * 100:g} %; none: a gain above {MARGIN * 100:g} % is "
        "excluded; ?: no verdict, the range that is not excluded.")


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


def holds_text(ratio: HostsRatio) -> str:
    """Return "faster on 3 of 4 (* on 2); same on host-3; starved on host-5"."""
    agreement = ratio.agreement
    stars = f" (* on {len(ratio.best)})" if ratio.best else ""
    parts = [f"{agreement.word} on {len(agreement.holds)} of {agreement.hosts}{stars}"] if ratio.by else []
    parts += [f"{len(hosts)} cannot tell" if word == SpeedVerdict.CANNOT_TELL else f"{word} on {names_text(hosts)}"
              for word, hosts in agreement.others.items()]
    reasons: dict[str, list[str]] = {}
    for host, reason in ratio.lacking.items():
        reasons.setdefault("not compared" if ratio.contrast else reason, []).append(host)
    return "; ".join([*parts, *(f"{why} on {names_text(hosts)}" for why, hosts in reasons.items())])


def agreement_text(speedups: Iterable[HostsRatio]) -> str:
    """Return whether hosts agree, in one sentence."""
    known = [each for each in speedups if each.agreement.hosts > 1]
    if not known:
        return "No speed-up is known on more than one host, so nothing shows whether any holds elsewhere."
    changing = [each for each in known if each.agreement.changes]
    open_ = sum(each.agreement.word == SpeedVerdict.CANNOT_TELL for each in known)
    parts = [f"agree on {len(known) - len(changing) - open_}",
             f"cannot tell {open_}" if open_ else "",
             f"differ on {len(changing)}: {'; '.join(map(_change_text, changing[:NAMED]))}" if changing else ""]
    more = "; ..." if len(changing) > NAMED else ""
    return f"Of {counted(len(known), 'speed-up')} on more than one host, hosts {list_text(filter(None, parts))}{more}."


def _change_text(ratio: HostsRatio) -> str:
    """Return "asyncio (2 workers) of primes on 3.14 is faster on host-1 and slower on host-2"."""
    cell, agreement = ratio.sample, ratio.agreement
    words = [f"{word} on {names_text(hosts)}" for word, hosts in ((agreement.word, agreement.holds),
             *agreement.others.items()) if word != SpeedVerdict.CANNOT_TELL]
    counts = counts_text(cell.runner, [cell.workers])
    return f"{cell.runner} ({counts}) of {workload_text(cell)} on {cell.build} is {list_text(words)}"
