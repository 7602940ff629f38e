"""Commands that repeat a measurement, and citations."""

from __future__ import annotations

import shlex
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.escaping import visible
from gilscope.toolkit.measure.settings import PRESETS, TIMEOUT_SECONDS
from gilscope.toolkit.report.sessions import MERGED
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.model import Run


def command(run: Run) -> str:
    """Return the command line that measures the run again."""
    if "experiment" in run.options:
        return _experiment(run)
    selection, settings = run.options.get("selection") or {}, run.options.get("settings") or {}
    user = selection.get("user")
    words = ["gilscope", "run", *(_user(user) if user else selection.get("workloads", []))]
    words += _builds(run)
    words += _preset(settings)
    # With --models the controls are measured too; --quick alone measures none.
    words += [] if selection.get("controls") is False else _listed("--models", selection.get("models"))
    words += _listed("--workers", selection.get("workers"))
    if (phases := [*selection.get("phases", ())]) not in ([], ["steady"]):
        words += ["--phases", phases[0] if len(phases) == 1 else "both"]
    if selection.get("size"):
        words += ["--size", selection["size"]]
    words += _listed("--task-length", [f"{each * 1000:g}ms" for each in selection.get("task_seconds") or ()])
    words += _listed("--with", run.options.get("packages"))
    if (run.options.get("sessions") or 1) > 1 and run.options.get("every"):
        words += ["--sessions", str(run.options["sessions"]), "--every", f"{run.options['every']:g}s"]
    # Each of several hosts has an order of its own, but --seed gives all of them the same.
    last = ["--fleet", f"local:{run.options[MERGED]}"] if MERGED in run.options else ["--seed", str(run.seed)]
    return _line([*words, *_effort(run, settings), *last])


def build_flags(run: Run) -> list[str]:
    """Return the version and the configure options of each build."""
    return [f"{build.label}: CPython {build.version}, {build.config_args or 'no options'}"
            + (f", source {build.revision}" if build.revision else "") for build in run.builds]


def _builds(run: Run) -> list[str]:
    """Return the options for the builds; the path of one that was given by its path is for the reader to fill in."""
    words = ["--builds", ",".join(build.label for build in run.builds)]
    for build in run.builds:
        if build.source == "explicit":
            words += ["--build", f"{build.label}=<build>/bin/{Path(build.executable).name}"]
    return words


def _preset(settings: dict[str, Any]) -> list[str]:
    # The number of values does not tell: a run of the user's function has fewer if the budget has no time for more.
    presets = [name for name, each in PRESETS.items() if name != "default" and all(
        settings.get(field) == getattr(each, field) for field in ("warmups", "min_seconds"))]
    return [f"--{name}" for name in presets]


def _effort(run: Run, settings: dict[str, Any]) -> list[str]:
    """Return the options for the effort: with --rounds all cells get them, else time goes to open cells."""
    budget, resolution = settings.get("budget"), settings.get("resolution")
    words = _budget(budget) + (["--resolution", f"{resolution * 100:g}%"] if resolution else [])
    if (timeout := settings.get("timeout") or TIMEOUT_SECONDS) != TIMEOUT_SECONDS:
        words += ["--timeout", f"{timeout:g}s"]
    if budget and settings.get("where_open") and not resolution:
        return words
    hosts = run.options.get(MERGED)
    rounds = ceil(run.rounds_planned / hosts) if hosts else settings.get("rounds") or run.rounds_planned
    return ["--rounds", str(rounds), *words]


def _budget(seconds: float | None) -> list[str]:
    return ["--budget", f"{seconds:g}s"] if seconds else []


def _experiment(run: Run) -> str:
    options = run.options
    effort = [] if options.get("effort") == "full" else [f"--{options.get('effort')}"]
    return _line(["gilscope", "experiment", "run", options["experiment"], *effort, *_builds(run), "--rounds",
                  str(run.rounds_planned), *_budget(options.get("budget")), "--seed", str(run.seed)])


def _user(user: dict[str, Any]) -> list[str]:
    words = [user["function"]]
    for option, name in (("--payloads", "payloads"), ("--payload", "payload"), ("--check", "check"),
                         ("--async-form", "async_function"), ("--kind", "kind")):
        if user.get(name) is not None:
            words += [option, str(user[name])]
    return [*words, "--tasks", str(user["tasks"])] if user.get("payload") is not None and user.get("tasks") else words


def _listed(option: str, values: Any) -> list[str]:
    return [option, ",".join(map(str, values))] if values else []


def _line(words: list[str]) -> str:
    return visible(" ".join(shlex.quote(str(word)) for word in words))


def days_text(starts: Iterable[str]) -> str:
    """Return "2026-11-24", or "2026-11-24 to 2026-11-27": from the first day to the last one."""
    days = sorted(each[:10] for each in starts)
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def site_citation(title: str, runs: Sequence[Run], made: Mapping[str, str], *, answers: int = 0) -> str:
    """Return the sentence by which a site is cited.

    Args:
        title: The site's.
        runs: All of them; none needs `answers`.
        made: How it is made; see `page_values`.
        answers: How many answers of other commands it has.
    """
    counts = [counted(count, noun) for count, noun in ((len(runs), "run"), (answers, "answer")) if count]
    when = f", measured {days_text(each.started for each in runs)}" if runs else ""
    return _reference(f'"{title}": {list_text(counts)} of gilscope {__version__}{_source(made)}{when}', made,
                      made.get("address", ""))


def citation(run: Run, made: Mapping[str, str], page: str = "") -> str:
    """Return the sentence by which a run is cited.

    Args:
        run: What is cited.
        made: How its page is made; see `page_values`.
        page: The file of its page in the site.
    """
    builds = ", ".join(f"CPython {build.label} ({build.version})" for build in run.builds)
    return _reference(
        f'gilscope {__version__}{_source(made)}: results "{run.label}", {builds}, measured {run.started[:10]} on '
        f"{run.machine.cpu_model}, {run.machine.cores} cores", made,
        f"{made['address'].rstrip('/')}/{page}" if made.get("address") else "")


def _reference(text: str, made: Mapping[str, str], address: str) -> str:
    by = f"{made['by']}: " if made.get("by") else ""
    return visible(f"{by}{text}.{f' {address}' if address else ''}", most=None)


def _source(made: Mapping[str, str]) -> str:
    """Return the address of gilscope's source in brackets, "" if it is not known."""
    return f" ({made['source']})" if made.get("source") else ""
