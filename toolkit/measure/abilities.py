"""Ask each build in child processes what it can run: a crash or a hang there is an answer."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.processes.sealed_answers import Seal, new_secret
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

LIMIT_SECONDS = 60.0  # an import may take a second; a busy machine must not make a model unavailable
_ENTRY = "from gilscope.toolkit.measure.child.abilities import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """The models and modules that one build can use: None if it can, else the reason why not."""

    runners: dict[str, str | None]
    modules: dict[str, str | None]  # imported in the main interpreter
    isolated: dict[str, str | None]  # imported in an own-GIL interpreter; only the requested ones
    versions: dict[str, str] = field(default_factory=dict)  # of the modules that are distributions
    results: str | None = None  # why results of the work cannot be pickled


def ask_build(
    python: str, env: Mapping[str, str], *, free_threaded: bool, modules: Iterable[str],
    isolated: Container[str] | None = None,
) -> Abilities:
    """Test the runners of the build behind `python`, and the imports of `modules`.

    `isolated` names the modules that own-GIL interpreters have to import; None: all.
    """
    runners = _ask(python, env, "runners", "-")
    if not isinstance(runners, dict):
        runners = dict.fromkeys(_runner_names(), str(runners))
    if free_threaded:
        # The control, threads with the GIL enabled, runs in a process that was started with the GIL.
        with_gil = _ask(python, {**env, "PYTHON_GIL": "1"}, "runners", "-")
        runners["threads"] = with_gil["threads"] if isinstance(with_gil, dict) else str(with_gil)
    here, inside = {}, {}
    for module in sorted(set(modules)):
        here[module] = _ask(python, env, "import", module)
        if isolated is None or module in isolated:
            usable = here[module] is None and runners["subinterpreters"] is None
            inside[module] = _ask(python, env, "isolated", module) if usable else here[module]
    versions = _ask(python, env, "versions", ",".join(here)) if here else {}
    return Abilities(
        runners=runners, modules=here, isolated=inside, versions=versions if isinstance(versions, dict) else {}
    )


def version_mismatches(abilities: Mapping[str, Abilities]) -> list[str]:
    """Return a sentence for each package with different versions in the builds: its cells compare these."""
    sentences = []
    for name in sorted({name for each in abilities.values() for name in each.versions}):
        by_build = {label: each.versions[name] for label, each in abilities.items() if name in each.versions}
        if len(set(by_build.values())) > 1:
            listed = ", ".join(f"{version} in {label}" for label, version in by_build.items())
            sentences.append(f"{name} is {listed}: its cells compare these versions too")
    return sentences


def _runner_names() -> list[str]:
    from gilscope.runners.catalog import RUNNERS

    return [runner.name for runner in RUNNERS]


def _ask(python: str, env: Mapping[str, str], question: str, name: str) -> Any:
    secret = new_secret()
    try:
        done = run([python, "-P", "-c", _ENTRY, question, name, secret], env=env, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        unknown = "which models work" if question == "runners" else f"if {name} works"
        return f"finding out {unknown} took longer than {LIMIT_SECONDS:g} s"
    except OSError as error:
        return f"cannot start {python}: {error.strerror}"
    answers = [fields for line in done.stdout.encode().split(b"\n") if (fields := Seal(secret).opened(line))]
    if done.returncode == 0 and answers:
        return answers[-1]["answer"]
    if done.returncode < 0:
        from signal import Signals

        doing = "importing the runners" if question == "runners" else f"importing {name}"
        return f"{doing} crashes with {Signals(-done.returncode).name}"
    return (done.stderr.strip().splitlines() or ["no answer"])[-1]
