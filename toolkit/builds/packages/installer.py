"""Run an installer, and say in a line why it refused a package: unknown name, no wheel for the build, no index reached.

pip says the same of all three ("No matching distribution found"), also when the network is down: only what it prints
with -vv differs.  uv says which it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.escaping import uncoloured
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTALL_SECONDS = 300.0

NO_WHEEL = "no wheel for this build"
UNKNOWN = "no package index in use knows a package of this name; look at its spelling"
NO_VERSION = "no package index in use has this version"
UNREACHED = "the package index cannot be reached"
SHOWN_VERSIONS = 5

_NONE = re.compile(r"no matching distribution|no wheels|has no usable wheels|no pre-built wheels", re.IGNORECASE)
_UV_UNKNOWN = re.compile(r"was not found in the (?:package registry|provided package locations)")
_UV_NO_VERSION = re.compile(r"there is no version of \S+")
_UV_GAVE_UP = "Failed to fetch|Request failed after"
# What they say when they have asked often enough; pip goes on as if there were no such package.
_GAVE_UP = re.compile(rf"Retry\(total=0|{_UV_GAVE_UP}", re.IGNORECASE)
_UV_UNREACHED = re.compile(rf"{_UV_GAVE_UP}|dns error|error sending request", re.IGNORECASE)
# What pip says where it gets no answer; it ends with the "no matching distribution" of a missing wheel.
_PIP_UNREACHED = re.compile(
    r"failed to establish a new connection|name resolution|name or service not known|network is unreachable|"
    r"connection refused|connect error|cannot connect to proxy|connection timed out|connecttimeout|"
    r"couldn't resolve host|network connectivity is disabled", re.IGNORECASE)
_VERSIONS = re.compile(r"\(from versions: (?!none)([^)]+)\)")
# What pip passes over without looking at: nothing that has the name asked for.
_SEEN = re.compile(r"Found link|Skipping link: (?!not a file|wrong project name|unsupported archive)")
_UNANSWERED = re.compile(
    r"Could not fetch URL \S+ (?!404 Client Error)(.*?)(?: - skipping)?$"
    r"|The repository located at (.*?) and is being ignored", re.MULTILINE)
_UNAVAILABLE = re.compile(r"have no matching distributions available for your environment:\n((?: +\S+\n)+)")
_LACKING = re.compile(r"No matching distribution found for (.+)")


def run_installer(command: Sequence[str | Path], extra: dict[str, str] | None = None) -> str:
    """Run an installer's command; return its last lines when it fails, "" when it does not."""
    outcome = run_to_end(command, extra or {})
    if isinstance(outcome, str):
        return outcome
    if outcome.returncode == 0:
        return ""
    lines = (outcome.stderr.strip() or outcome.stdout.strip() or "no output").splitlines()
    return "\n".join(lines[-12:])


def talk(command: Sequence[str | Path]) -> str:
    """Run an installer's command; return all that it printed."""
    outcome = run_to_end(command, {})
    return outcome if isinstance(outcome, str) else outcome.stdout + outcome.stderr


def run_to_end(
    command: Sequence[str | Path], extra: dict[str, str], *, seconds: float = INSTALL_SECONDS
) -> subprocess.CompletedProcess[str] | str:
    """Return how an installer's command ended, with all that it printed, or why that is not known.

    Args:
        command: What is run.
        extra: Variables beside those that it inherits.
        seconds: That it may take.
    """
    # An activated environment must not turn the installer's mind from the one that is named.
    inherited = {name: value for name, value in os.environ.items()
                 if name not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "__PYVENV_LAUNCHER__"}}
    try:
        # Its build folders, too, go when it is ended; those of a killed gilscope are swept by the next one.
        with tempfile.TemporaryDirectory(prefix=temporary.prefix("install"), ignore_cleanup_errors=True) as folder:
            return run(command, timeout=seconds, env={**inherited, "TMPDIR": folder, **extra})
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name} did not end within {seconds:.0f} s"
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"


def gave_up(said: str) -> str:
    """Return the line of what pip or uv printed that says that the index did not answer at last; "" when none does.

    That it did not at first is no such line: the next attempt may have had an answer.
    """
    return next((line.strip() for line in said.splitlines() if _GAVE_UP.search(line)), "")


def shortened(reason: str) -> str:
    """Return an installer's complaint in one line of at most 300 characters."""
    plain = uncoloured(reason)
    words = " ".join(plain.split())
    if _UV_UNKNOWN.search(words):
        return UNKNOWN
    if _UV_NO_VERSION.search(words):
        return NO_VERSION
    if _UV_UNREACHED.search(words):
        return f"{UNREACHED}: {_told(plain)}"
    if _PIP_UNREACHED.search(words):
        return UNREACHED
    return NO_WHEEL if _NONE.search(words) else _told(plain)


def from_talk(talk: str) -> str:
    """Return which of the three it is, from what pip prints with -vv about a requirement that it has nothing for."""
    if _SEEN.search(talk):
        return NO_WHEEL
    if unanswered := _UNANSWERED.search(talk):
        return f"{UNREACHED}: {textwrap.shorten(unanswered[1] or unanswered[2], 200, placeholder='...')}"
    return UNKNOWN


def without_version(reason: str) -> str | None:
    """Return which versions have a wheel where only that asked for has none; None when pip names no version."""
    match = _VERSIONS.search(reason)
    if match is None:
        return None
    newest = match[1].split(", ")[-SHOWN_VERSIONS:]
    return f"no version that is asked for has a wheel for this build; of others there are {', '.join(newest)}"


def lacking(reason: str) -> str | None:
    """Return the requirement that pip has nothing for, which may be one that the package asked for needs."""
    match = _LACKING.search(reason)
    return match[1].partition(" (from ")[0].strip() if match else None


def conflicting(reason: str) -> bool:
    """Return whether pip looked in vain for versions that go together."""
    return "ResolutionImpossible" in reason


def unavailable(talk: str) -> list[str]:
    """Return what has no file for this build, from what pip prints without --quiet about versions that it refused."""
    match = _UNAVAILABLE.search(talk)
    return match[1].split() if match else []


def _told(plain: str) -> str:
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"error|caused by|.*cause:", line, re.IGNORECASE)] or lines[-1:]
    return textwrap.shorten(" ".join(told), 300, placeholder="...")
