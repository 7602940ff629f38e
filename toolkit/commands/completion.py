"""Shell completion: scripts that shtab makes from the parser, with the candidates for each value.

Workloads, models and experiments are written into the script.  Labels are read from the folders with results, builds
from one short call of gilscope.  For all other words, the shell completes files as usual.
"""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING, Any

import shtab

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.experiments.catalog import EXPERIMENTS
from gilscope.toolkit.store.labels import DEFAULT_RESULTS, EARLIER_RESULTS, VARIABLE
from gilscope.workloads.catalog import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUNS = (f'for d in "${{{VARIABLE}:-{DEFAULT_RESULTS}}}" {DEFAULT_RESULTS} {EARLIER_RESULTS}; do for f in %s; do '
         '[ -e "$f" ] && f=${f#"$d"/} && echo "${f%%/*}"; done; done | sort -u')
_WORDS = {
    "workloads": [each.name for each in WORKLOADS],
    "models": [*(each.name for each in RUNNERS), "processes"],
    "experiments": [*EXPERIMENTS, "all"],
    "versions": [f"3.{minor}{kind}" for minor in range(12, 16) for kind in ("", "t") if (minor, kind) != (12, "t")],
}
_COMMANDS = {  # commands for sh that print the candidates, one per line
    **{kind: f"printf '%s\\n' {shlex.join(words)}" for kind, words in _WORDS.items()},
    "labels": _RUNS % '"$d"/*/run.json "$d"/*/*/run.json',
    "runs": _RUNS % '"$d"/*/run.json',
    "repeats": _RUNS % '"$d"/*/experiments.json',
    "repeated": _RUNS % '"$d"/*/experiments.json "$d"/*/*/run.json',
    "builds": r"""gilscope builds --json 2>/dev/null | sed -n 's/^   "label": "\(.*\)",$/\1/p'""",
    "added": r"""sed -n 's/^ "\(.*\)": ".*/\1/p' """
    '"${GILSCOPE_DATA:-${XDG_DATA_HOME:-$HOME/.local/share}/gilscope}/added.json" 2>/dev/null',
}
_LISTS = ("models", "builds")  # these can be lists with commas: 3.14,3.14t
_MODULES = 'for f in *.py */__init__.py; do [ -e "$f" ] && f=${f%/__init__.py} && echo "${f%.py}:"; done'

_COMMANDS["modules"] = _MODULES
_KINDS = {  # command and argparse's name of a value -> the kind of its candidates
    ("run", "workload"): "workloads", ("run", "models"): "models_list", ("run", "builds"): "builds_list",
    ("run", "resume"): "runs", ("run", "add_session"): "runs", ("compare", "labels"): "labels",
    ("compare", "builds"): "builds_list",
    ("compare", "models"): "models_list", ("report", "labels"): "labels", ("race", "build"): "builds",
    ("gil", "build"): "builds", ("experiment run", "name"): "experiments", ("experiment run", "builds"): "builds_list",
    ("experiment run", "resume"): "repeats", ("experiment show", "label"): "repeated",
    ("evaluate", "builds"): "builds_list", ("doctor", "builds"): "builds_list", ("list", "builds"): "builds_list",
    ("builds remove", "label"): "added", ("builds install", "names"): "versions",
}
_FILES = frozenset({"FILE", "TARBALL", "SCRIPT|MODULE:FUNCTION"})
_FOLDERS = frozenset({"FOLDER", "PATH"})
_OF_A_MODULE = ("--payloads", "--check", "--async-form")


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of `shell` for the whole command line; changes `parser`."""
    for command, each in _commands(parser):
        if command in {"race", "gil"}:  # these remove the program's words before argparse reads them
            each.add_argument("program", nargs="*", help="the program and its arguments")
        for action in each._actions:
            if kind := _kind(command, action):
                action.complete = kind   # type: ignore[attr-defined]  # read by shtab
    text = shtab.complete(parser, shell, preamble=_preamble(shell, _with_value(parser)))
    if shell == "zsh":
        # `source` must register it too, and a colon in MODULE:NAME would end zsh's name of the value.
        text = text.replace("[[ $zsh_eval_context[-1] == eval ]]", "[[ $zsh_eval_context[-1] == (eval|file) ]]")
        return re.sub(r"(?<=\]:)([A-Z|]+):([A-Z]+):", r"\1\\:\2:", text)
    # Ours is called first; if it has no candidates, the shell completes files.
    ours = "complete -o bashdefault -o default -F _gilscope gilscope"
    return text.replace("complete -o bashdefault -F _shtab_gilscope gilscope", ours)


def _commands(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                yield f"{path} {name}".strip(), each
                yield from _commands(each, f"{path} {name}".strip())


def _kind(command: str, action: argparse.Action) -> dict[str, Any] | None:
    """Return the completion of an option's or argument's value for each shell."""
    if kind := _KINDS.get((command, action.dest)):
        return {"bash": f"_gilscope_{kind}", "zsh": f"_gilscope_{kind}", "fish": f"(_gilscope_{kind})",
                "tcsh": f"({' '.join(_WORDS.get(kind.removesuffix('_list'), ['']))})"}
    if not {*_OF_A_MODULE}.isdisjoint(action.option_strings):
        return {"zsh": "_gilscope_modules", "fish": "(_gilscope_modules)"}   # bash: see _BASH
    if action.metavar in _FILES or action.dest == "program":
        return dict(shtab.FILE)
    return dict(shtab.DIRECTORY) if action.metavar in _FOLDERS else None


def _preamble(shell: str, with_value: str) -> str:
    """Return the functions that the script calls.

    Args:
        shell: One of `SHELLS` of the command line.
        with_value: The options of `race` and `gil` that take a value.
    """
    if shell not in _FUNCTIONS:
        return ""
    single, listed, end = _FUNCTIONS[shell]
    parts = [single.replace("KIND", kind).replace("COMMAND", shlex.quote(text)) for kind, text in _COMMANDS.items()]
    parts += [listed.replace("KIND", kind).replace("COMMAND", shlex.quote(_COMMANDS[kind])) for kind in _LISTS]
    return "\n".join([*parts, end.replace("WITH_VALUE", with_value)])


def _with_value(parser: argparse.ArgumentParser) -> str:
    """Return the options of `race` and `gil` that take the next word as their value."""
    commands = [each for command, each in _commands(parser) if command in {"race", "gil"}]
    actions = [action for each in commands for action in each._actions]
    return " ".join(sorted({option for each in actions if each.nargs is None for option in each.option_strings}))


_BASH = f"""\
# A script's arguments are its own.  Functions of a module cannot be listed without importing it, but its name can.
_gilscope() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" i
  COMPREPLY=()
  case "${{COMP_WORDS[1]}}" in race|gil)
    for ((i = 2; i < COMP_CWORD; i++)); do
      case " WITH_VALUE " in *" ${{COMP_WORDS[i]}} "*) ((i++)); continue;; esac
      [[ "${{COMP_WORDS[i]}}" == -?* && "${{COMP_WORDS[i]}}" != -m* && "${{COMP_WORDS[i]}}" != -- ]] || return 0
    done
    if [[ "$word" != -* && " WITH_VALUE " != *" $before "* ]]; then
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -X '!*.py' -- "$word") $(compgen -d -- "$word"))
      return 0
    fi;;
  esac
  case " {" ".join(_OF_A_MODULE)} " in *" $before "*)
    compopt +o default +o bashdefault -o nospace 2>/dev/null
    COMPREPLY=($(compgen -W "$(sh -c {shlex.quote(_MODULES)})" -- "$word"))
    return 0;;
  esac
  _shtab_gilscope
}}"""
_FUNCTIONS = {
    "bash": (
        '_gilscope_KIND() { compgen -W "$(sh -c COMMAND)" -- "$1"; }',
        ("_gilscope_KIND_list() {\n"
         '  local rest="${1##*,}"; local done="${1%"$rest"}"\n'
         '  compgen -P "$done" -W "$(sh -c COMMAND)" -- "$rest"\n}'),
        _BASH),
    "zsh": (
        '_gilscope_KIND() { compadd -- ${(f)"$(sh -c COMMAND)"} }',
        '_gilscope_KIND_list() { _sequence compadd - ${(f)"$(sh -c COMMAND)"} }',
        # No space behind a module and its colon, where the function's name follows.
        f"_gilscope_modules() {{ compadd -S '' -- ${{(f)\"$(sh -c {shlex.quote(_MODULES)})\"}} }}"),
    "fish": (
        "function _gilscope_KIND; sh -c COMMAND; end",
        ("function _gilscope_KIND_list\n"
         "  set -l done (commandline -ct | string match -r '^.*,')\n"
         '  for each in (sh -c COMMAND); echo "$done$each"; end\nend'), ""),
}
