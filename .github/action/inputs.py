"""The input of a step: the action's inputs, and the event that started the workflow."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODES = ("race", "guard", "doctor", "dist", "compare")
FINDINGS, INCONCLUSIVE, NEVER = "findings", "inconclusive", "never"   # the words of `fail-on`


class InputError(ValueError):
    """The workflow asks for something that cannot be done: the message says what, and what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionInputs:
    """The inputs of action.yml that are more than a text for one place."""

    mode: str
    arguments: tuple[str, ...]
    workspace: Path                # the checkout
    folder: Path                   # to work in, below the checkout
    install: tuple[str, ...]       # the words after `pip install`
    builds: tuple[str, ...]        # labels
    version: str                   # of gilscope; "" for this checkout
    fail_on: frozenset[str]        # of FINDINGS and INCONCLUSIVE
    name: str

    @property
    def place(self) -> str:
        """The folder as seen from the checkout."""
        return self.folder.relative_to(self.workspace).as_posix()


def given(name: str) -> str:
    """Return an input without surrounding white space; "" if it is not given."""
    return os.environ.get(f"INPUT_{name.replace('-', '_').upper()}", "").strip()


def read_inputs() -> ActionInputs:
    """Return the inputs.

    Raises:
        InputError: One of them has no meaning.
    """
    mode = given("mode")
    if mode not in MODES:
        raise InputError(f"mode is {mode!r}: write one of {', '.join(MODES)}")
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or os.curdir).resolve()
    folder = (workspace / given("working-directory")).resolve()
    if not folder.is_relative_to(workspace):
        raise InputError(f"working-directory is {given('working-directory')!r}: name a folder in the checkout")
    if not folder.is_dir():
        raise InputError(f"working-directory is {given('working-directory')!r}: there is no such folder; is the "
                         "project checked out (actions/checkout) before this step?")
    return ActionInputs(
        mode=mode, arguments=_words("arguments"), workspace=workspace, folder=folder, install=_words("install"),
        builds=tuple(filter(None, (each.strip() for each in given("builds").replace("\n", ",").split(",")))),
        version=given("version"), fail_on=_fail_on(), name=given("name"))


def _words(name: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(given(name)))
    except ValueError as error:
        raise InputError(f"{name} is {given(name)!r}, which is not a command line: {error}") from error


def _fail_on() -> frozenset[str]:
    words = {each.strip() for each in (given("fail-on") or FINDINGS).split(",")}
    if words == {NEVER}:
        return frozenset()
    if not words <= {FINDINGS, INCONCLUSIVE}:
        raise InputError(f"fail-on is {given('fail-on')!r}: write `{FINDINGS}`, `{FINDINGS},{INCONCLUSIVE}` or "
                         f"`{NEVER}`")
    return frozenset(words)


def event() -> dict[str, Any]:
    """Return the event that started the workflow; {} if the runner gives none."""
    path = os.environ.get("GITHUB_EVENT_PATH")
    if not path or not Path(path).exists():
        return {}
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {}
