"""What each build can do, found by asking it in child processes: a crash or a hang there is an answer too."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.processes.sealed_answers import Seal, new_secret
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

LIMIT_SECONDS = 60.0  # some take a second; a busy machine must not make a model missing
_ENTRY = "from gilscope.toolkit.measure.abilities.probe_child import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What one build can do.  None is yes, a text the reason why not."""

    runners: dict[str, str | None]
    modules: dict[str, str | None]  # imported in the main interpreter
    isolated: dict[str, str | None]  # imported in an own-GIL interpreter; only those that were asked for
    versions: dict[str, str] = field(default_factory=dict)  # of the modules that are distributions


def ask_build(
    python: str, env: Mapping[str, str], *, free_threaded: bool, modules: Iterable[str],
    isolated: Container[str] | None = None,
) -> Abilities:
    """Return what the build behind `python` can do with its runners and with `modules`.

    `isolated` are those of them that own-GIL interpreters are to import, too; None: all.
    """
    found = _ask(python, env, "runners", "-")
    if not isinstance(found, dict):
        found = dict.fromkeys(_runner_names(), str(found))
    if free_threaded:
        # The control, threads with the GIL on, runs in a process that was started with it.
        with_gil = _ask(python, {**env, "PYTHON_GIL": "1"}, "runners", "-")
        found["threads"] = with_gil["threads"] if isinstance(with_gil, dict) else str(with_gil)
    here, inside = {}, {}
    for module in sorted(set(modules)):
        here[module] = _ask(python, env, "import", module)
        if isolated is None or module in isolated:
            usable = here[module] is None and found["subinterpreters"] is None
            inside[module] = _ask(python, env, "isolated", module) if usable else here[module]
    versions = _ask(python, env, "versions", ",".join(here)) if here else {}
    return Abilities(
        runners=found, modules=here, isolated=inside, versions=versions if isinstance(versions, dict) else {}
    )


def version_mismatches(abilities: Mapping[str, Abilities]) -> list[str]:
    """Return a sentence for each package whose version is not the same in all builds: its cells compare that, too."""
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
        asked = "which models work" if question == "runners" else f"whether {name} works"
        return f"the question {asked} did not end within {LIMIT_SECONDS:g} s"
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
