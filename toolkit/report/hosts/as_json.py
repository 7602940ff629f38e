"""Results of several hosts as values for programs, in the form of `schemas/hosts.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.report.as_json import cell_values, compare_values, comparison, ends, finite, in_short, made
from gilscope.toolkit.report.hosts.agreement import hosts_tables, judge_pooled
from gilscope.toolkit.report.hosts.document import build_contrasts, hosts_document, stopping_lines
from gilscope.toolkit.report.hosts.tables import unknown_hosts, warnings
from gilscope.toolkit.report.sessions import scope_of_runs
from gilscope.toolkit.stats.verdict import MARGIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.hosts.agreement import HostsComparison, HostsContrast, MeasuredHost
    from gilscope.toolkit.stats.hosts import PooledRatio
    from gilscope.toolkit.store import Host

HOSTS = "gilscope/hosts/1"


def hosts_values(label: str, hosts: Sequence[MeasuredHost], states: Sequence[Host] = ()) -> dict[str, Any]:
    """Return the report of what several hosts measured; the arguments are those of `hosts_document`."""
    values: dict[str, Any] = finite({
        "schema": HOSTS, "gilscope": __version__, "label": label, "margin": MARGIN,
        "scope": scope_of_runs([each.run for each in hosts]),
        "notes": [*(banner.text for banner in warnings(hosts, states)), *stopping_lines(hosts)],
        "machines_known": not unknown_hosts(hosts, states),
        "hosts": _hosts(hosts, states),
        "cells": [
            {**cell_values(row.cell), "over": over_values(row.over)}
            for table in hosts_tables(hosts) for row in table.rows
        ],
        "build_ratios": [
            {**cell_values(each.contrast.sample), "against": each.contrast.baseline.build,
             "clock": each.contrast.clock, "over": over_values(each.over)}
            for each in build_contrasts(hosts)
        ],
        "in_short": in_short(hosts_document(label, hosts, states)),
    })
    return values


def over_values(over: HostsComparison, margin: float = MARGIN) -> dict[str, Any]:
    """Return one ratio on each host, what they say together, and on which it holds."""
    agreement = over.agreement
    return {
        "hosts": {
            **{name: {"ratio": comparison(each, margin), "reason": None,
                      "notes": [note.text for note in over.notes.get(name, ())]} for name, each in over.by.items()},
            **{name: {"ratio": None, "reason": absent.reason, "notes": []} for name, absent in over.lacking.items()},
        },
        "pooled": None if over.pooled is None else _pooled(over.pooled, margin),
        "verdict": agreement.word, "holds_on": list(agreement.holds),
        "others": {str(word): list(names) for word, names in agreement.others.items()},
    }


def hosts_compare_values(contrasts: Sequence[HostsContrast], *, margin: float, **more: Any) -> dict[str, Any]:
    """Return the report of a comparison of cells on several hosts; the arguments are those of `compare_values`."""
    values = compare_values([each.contrast for each in contrasts], margin=margin, **more)
    for cell, each in zip(values["cells"], contrasts, strict=True):
        cell["over"] = finite(over_values(each.over, margin))
        if cell["ratio"]:
            cell["ratio"]["rounds_to_tell"] = None   # more hosts would help, not more rounds
    return values


def _pooled(pooled: PooledRatio, margin: float) -> dict[str, Any]:
    ratio = pooled.comparison
    (lo, hi), (least, most), (first, last) = map(ends, ((ratio.lo, ratio.hi), ratio.between, pooled.next_host))
    return {
        "ratio": ratio.ratio, "lo": lo, "hi": hi, "confidence": ratio.confidence, "floor": ratio.floor,
        "hosts": pooled.effects.hosts, "between_hosts": pooled.between,
        "next_host": {"lo": first, "hi": last}, "between": {"lo": least, "hi": most},
        "verdict": judge_pooled(pooled, margin),
    }


def _hosts(hosts: Sequence[MeasuredHost], states: Sequence[Host]) -> list[dict[str, Any]]:
    measured = {name: host for host in hosts for name in host.names}
    state_of = {host.name: host for host in states}
    return [
        {
            "name": name, "counted_as": measured[name].name if name in measured else None,
            "state": str(state_of[name].state) if name in state_of else None,
            "note": state_of[name].note if name in state_of else "",
            "run": made(measured[name].run) | {"notes": [*measured[name].cautions]} if name in measured else None,
        }
        for name in (state_of or measured)
    ]
