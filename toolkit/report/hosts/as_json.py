"""Results of several hosts as values for programs, in the form of `schemas/hosts.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.report.as_json import cell_values, comparison, finite, made
from gilscope.toolkit.report.hosts.agreement import build_contrasts, hosts_speedups
from gilscope.toolkit.report.hosts.tables import warnings
from gilscope.toolkit.report.hosts.wording import agreement_text
from gilscope.toolkit.report.sessions import scope_of_hosts
from gilscope.toolkit.stats.verdict import MARGIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.report.hosts.agreement import HostsRatio, MeasuredHost
    from gilscope.toolkit.store import Host

HOSTS = "gilscope/hosts/3"


def hosts_values(label: str, hosts: Sequence[MeasuredHost], states: Sequence[Host] = ()) -> dict[str, Any]:
    """Return the report of what several hosts measured; the arguments are those of `hosts_document`."""
    speedups = hosts_speedups(hosts)
    values: dict[str, Any] = finite({
        "schema": HOSTS, "gilscope": __version__, "label": label, "margin": MARGIN,
        "scope": scope_of_hosts([each.run for each in hosts]),
        "notes": [banner.text for banner in warnings(hosts, states)],
        "hosts": _hosts(hosts, states),
        "cells": [{**cell_values(each.sample), "over": over_values(each)} for each in speedups],
        "build_ratios": [
            {**cell_values(each.sample), "against": each.contrast.baseline.build, "clock": each.contrast.clock,
             "over": over_values(each)}
            for each in build_contrasts(hosts) if each.contrast is not None
        ],
        "in_short": [agreement_text(speedups)],
    })
    return values


def over_values(ratio: HostsRatio) -> dict[str, Any]:
    """Return one ratio on each host, and on which its verdict holds."""
    agreement = ratio.agreement
    return {
        "hosts": {
            **{name: {"ratio": comparison(each), "reason": None,
                      "notes": [note.text for note in ratio.notes.get(name, ())]} for name, each in ratio.by.items()},
            **{name: {"ratio": None, "reason": reason, "notes": []} for name, reason in ratio.lacking.items()},
        },
        "verdict": agreement.word, "holds_on": list(agreement.holds),
        "others": {str(word): list(names) for word, names in agreement.others.items()},
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
