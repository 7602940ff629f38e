"""On how many machines each verdict holds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.hosts.wording import names_text
from gilscope.toolkit.report.table_sentences import title_text
from gilscope.toolkit.report.wording import beside, ratio_text
from gilscope.toolkit.site.page_values import shown
from gilscope.toolkit.site.pages.newest import KINDS, by_host, newest, places, stopping_notes
from gilscope.toolkit.site.pages.run import kind_of
from gilscope.toolkit.site.sources import machine_name
from gilscope.toolkit.site.style import legend, mark_of, shapes
from gilscope.toolkit.stats.verdict import SpeedVerdict
from gilscope.toolkit.units import counted, format_bytes, list_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.report.table import CellResult
    from gilscope.toolkit.report.table.observations import Group
    from gilscope.toolkit.site.pages.newest import WorkloadOnBuild
    from gilscope.toolkit.site.sources import LoadedRun

Key = tuple["Group", str, int, str]   # model, workers and build follow


def machines_values(known: Sequence[LoadedRun], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of `machines.html` but those around it.

    Args:
        known: All runs, the oldest first; each cell is that of the newest run of a machine that has it.  Of experiments
            only the machines are shown: their cells have no verdict of this kind.
        kinds: Of the catalogue's workloads.
    """
    hosts = by_host([each for each in known if not each.is_experiment])
    found: dict[Key, dict[str, tuple[WorkloadOnBuild, CellResult]]] = {}
    for host, runs in hosts.items():
        for (group, build), place in newest(places(runs)).items():
            for result in place.results:
                if place.table.compares(result):
                    found.setdefault((group, result.cell.runner, result.cell.workers, build), {})[host] = place, result
    rows = [_row(key, by, kinds, len(hosts)) for key, by in found.items()]
    # What changes first, then what several machines say alike.
    rows.sort(key=lambda row: (
        not row["changes"], -row["decided"], -row["hosts"], KINDS.index(row["kind"]), row["workload"]))
    models = [row["model"] for row in rows]
    used = {place.loaded.id for by in found.values() for place, _ in by.values()}
    return shown({
        "stopping": stopping_notes([each for each in known if each.id in used]),
        "machines": [_machine(host, each) for host, each in by_host(known).items()], "rows": rows, "names": list(hosts),
        "experiments": any(each.is_experiment for each in known),
        "models": legend(models), "shapes": shapes(), "sentence": _sentence(rows, hosts),
        "choices": {"build": list(dict.fromkeys(row["build"] for row in rows)),
                    "model": [each["model"] for each in legend(models)],
                    "kind": [kind for kind in KINDS if kind in {row["kind"] for row in rows}]},
    })


def _row(
    key: Key, by: Mapping[str, tuple[WorkloadOnBuild, CellResult]], kinds: Mapping[str, str], hosts: int,
) -> dict[str, Any]:
    _, model, workers, build = key
    words: Counter[str] = Counter()
    lacking: Counter[str] = Counter()
    places_: dict[str, dict[str, Any]] = {}
    for host, (place, result) in by.items():
        if result.speedup is None or result.absence is not None:
            lacking[result.why_no_ratio] += 1
            places_[host] = {"text": result.why_no_ratio, "sort": None, "link": place.link}
            continue
        word = result.speedup.verdict()
        words[word] += 1
        places_[host] = {"text": ratio_text(result.speedup) + beside(result.speedup), "sort": result.speedup.ratio,
                         "link": place.link}
    table = next(iter(by.values()))[0].table
    verdicts = words.keys() - {SpeedVerdict.CANNOT_TELL}
    if len(by) < hosts:
        lacking["not measured"] = hosts - len(by)
    said = [f"{word} on {count} of {words.total()}" if hosts > 1 else str(word) for word, count in words.most_common()]
    without = [f"{why} on {count}" if hosts > 1 else str(why) for why, count in lacking.items()]
    return {
        "kind": kind_of(table, kinds), "workload": title_text(table), "build": build, "model": model,
        "workers": workers, **mark_of(model), "places": places_, "hosts": words.total(),
        "decided": sum(words[word] for word in verdicts),
        "said": "; ".join(each for each in (", ".join(said), ", ".join(without)) if each),
        "changes": len(verdicts) > 1,
    }


def _perhaps_one(by_name: Mapping[str, Sequence[LoadedRun]]) -> str:
    """Return that machines that look alike may be one, for all that is known; "" if none may."""
    looks: dict[str, list[str]] = {}
    for name, runs in by_name.items():
        looks.setdefault(machine_name(runs[-1].run.machine), []).append(name)
    doubtful = [name for names in looks.values() if len(names) > 1
                and any(not each.planned.is_marked for name in names for each in by_name[name]) for name in names]
    return f" Whether {names_text(doubtful)} are different machines is not known." if doubtful else ""


def _sentence(rows: Sequence[Mapping[str, Any]], by_name: Mapping[str, Sequence[LoadedRun]]) -> str:
    if (hosts := len(by_name)) < 2:  # one says nothing about others
        runs = [each for found in by_name.values() for each in found]
        # The name of a machine is made of what several machines may have alike, unless somebody gave it.
        is_one = len(runs) < 2 or all(each.planned.is_named for each in runs)
        alike = "one machine" if is_one else "machines that look alike"
        return (f"All runs are from {alike}, so nothing shows whether their verdicts hold on others. `gilscope site "
                "laptop=FOLDER server=FOLDER` shows results of several machines side by side.")
    shared = [row for row in rows if row["decided"] > 1]
    changing = sum(row["changes"] for row in shared)
    if not shared:
        return (f"No cell has a verdict on more than one of {hosts} machines, so nothing shows whether any holds "
                f"elsewhere.{_perhaps_one(by_name)}")
    holds = len(shared) - changing
    return (f"{counted(len(shared), 'cell is', 'cells are')} decided on more than one of {hosts} machines: "
            f"{counted(holds, 'agrees', 'agree')} on all of them, "
            f"{counted(changing, 'changes', 'change')} between them.{_perhaps_one(by_name)}")


def _machine(host: str, runs: Sequence[LoadedRun]) -> dict[str, Any]:
    machines = list(dict.fromkeys(each.run.machine for each in runs))
    memory = [f", {format_bytes(each.memory_bytes)}" if each.memory_bytes else "" for each in machines]
    return {
        "name": host, "runs": sum(not each.is_experiment for each in runs),
        "experiments": sum(each.is_experiment for each in runs),
        "first": runs[0].run.started[:10], "last": runs[-1].run.started[:10],
        "machines": [f"{each.cpu_model}, {each.cores} cores{size}, {each.system}"
                     for each, size in zip(machines, memory, strict=True)],
        "builds": list_text(dict.fromkeys(
            f"{build.label} ({build.version})" for each in runs for build in each.run.builds)),
        "links": [{"label": each.run.label, "address": each.page} for each in runs],
    }
