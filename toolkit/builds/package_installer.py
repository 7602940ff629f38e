"""Run pip or uv, and explain in one line why a package was not installed.

The causes are an unknown name, no wheel for the build, and an index that cannot be reached.  pip prints the same for
all three ("No matching distribution found"); only its output with -vv tells them apart.  uv names the cause.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import textwrap
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.escaping import uncoloured
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTALL_SECONDS = 300.0


class InstallProblemKind(StrEnum):
    """Why a package was not installed, for decisions; `InstallProblem.reason` is for people alone."""

    UNKNOWN_NAME = "unknown-name"   # no index in use has the package
    NO_VERSION = "no-version"       # no index in use has the requested version
    NO_WHEEL = "no-wheel"           # the package exists, but not compiled for the build
    UNREACHED = "unreached"         # the index did not answer, so nothing is known about the package
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class InstallProblem:
    """The reason why one package was not installed; a whole section without a result is a `Missing`."""

    reason: str
    more: str = ""            # a remedy or detail after the reason, such as "its source takes rustc"
    kind: InstallProblemKind = InstallProblemKind.OTHER

    @property
    def not_found(self) -> bool:
        """True if no index in use has the package, or the requested version."""
        return self.kind in {InstallProblemKind.UNKNOWN_NAME, InstallProblemKind.NO_VERSION}

    @property
    def unreached(self) -> bool:
        """True if the index did not answer."""
        return self.kind is InstallProblemKind.UNREACHED

    def __str__(self) -> str:
        """Return the reason and the detail in one line."""
        return f"{self.reason}; {self.more}" if self.more else self.reason


NOT_FOUND = InstallProblem("no package index in use knows a package of this name", "look at its spelling",
                           kind=InstallProblemKind.UNKNOWN_NAME)
NO_SUCH_VERSION = InstallProblem("no package index in use has this version", kind=InstallProblemKind.NO_VERSION)
WITHOUT_WHEEL = InstallProblem("no wheel for this build", kind=InstallProblemKind.NO_WHEEL)
INDEX_UNREACHED = "the package index cannot be reached"
SHOWN_VERSIONS = 5
INTERRUPTED = 128 + signal.SIGINT   # the exit code of uv after Ctrl-C

_NONE = re.compile(r"no matching distribution|no wheels|has no usable wheels|no pre-built wheels", re.IGNORECASE)
_UV_UNKNOWN = re.compile(r"was not found in the (?:package registry|provided package locations)")
_UV_NO_VERSION = re.compile(r"there is no version of \S+")
_UV_GAVE_UP = "Failed to fetch|Request failed after"
# Printed after the last attempt.  pip then continues as if the package did not exist.
_GAVE_UP = re.compile(rf"Retry\(total=0|{_UV_GAVE_UP}", re.IGNORECASE)
_UV_UNREACHED = re.compile(rf"{_UV_GAVE_UP}|dns error|error sending request", re.IGNORECASE)
# Printed by pip when the index does not answer; it still ends with "no matching distribution", as for a missing wheel.
_PIP_UNREACHED = re.compile(
    r"failed to establish a new connection|name resolution|name or service not known|network is unreachable|"
    r"connection refused|connect error|cannot connect to proxy|connection timed out|connecttimeout|"
    r"couldn't resolve host|network connectivity is disabled", re.IGNORECASE)
_VERSIONS = re.compile(r"\(from versions: (?!none)([^)]+)\)")
# A file of the requested package, as opposed to links that pip skips because they are something else.
_CANDIDATE = re.compile(r"Found link|Skipping link: (?!not a file|wrong project name|unsupported archive)")
_UNANSWERED = re.compile(
    r"Could not fetch URL \S+ (?!404 Client Error)(.*?)(?: - skipping)?$"
    r"|The repository located at (.*?) and is being ignored", re.MULTILINE)
_UNAVAILABLE = re.compile(r"have no matching distributions available for your environment:\n((?: +\S+\n)+)")
_UNMATCHED = re.compile(r"No matching distribution found for (.+)")
_WITHOUT_FILE = re.compile(r"(?:No matching distribution found for|Because(?: only)?) ([A-Za-z0-9][\w.-]*)")
_UNMET = re.compile(r"requires ([\w.-]+), which is not installed")
_CANCELLED = "Operation cancelled by user"
_AVAILABLE = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_FILE = re.compile(r"/([^/#?\s]+\.(?:whl|tar\.gz|zip))(?=[#?\s]|$)", re.MULTILINE)


def run_installer(command: Sequence[str | Path], extra: dict[str, str] | None = None) -> str:
    """Run an installer's command and return the last lines of its output if it fails, "" if it succeeds."""
    return failure_in(run_to_end(command, extra or {}))


def failure_in(outcome: subprocess.CompletedProcess[str] | str) -> str:
    """Return the last lines of a failed command's output, "" if it succeeded; `outcome` is that of `run_to_end`."""
    if isinstance(outcome, str):
        return outcome
    if outcome.returncode == 0:
        return ""
    lines = (outcome.stderr.strip() or outcome.stdout.strip() or "no output").splitlines()
    return "\n".join(lines[-12:])


def was_stopped(code: int) -> bool:
    """Return True if the exit code of an installer says that it was stopped from outside, by a signal or Ctrl-C."""
    return code < 0 or code == INTERRUPTED


def was_cancelled(output: str) -> bool:
    """Return True if pip reports Ctrl-C, which its exit code does not tell: that is 1, as after any failure."""
    return _CANCELLED in output


def full_output(command: Sequence[str | Path]) -> str:
    """Run an installer's command and return everything it printed."""
    outcome = run_to_end(command, {})
    return outcome if isinstance(outcome, str) else outcome.stdout + outcome.stderr


def run_to_end(
    command: Sequence[str | Path], extra: dict[str, str], *, seconds: float = INSTALL_SECONDS
) -> subprocess.CompletedProcess[str] | str:
    """Run an installer's command and return its exit code and output, or the reason why there are none.

    Args:
        command: The command and its arguments.
        extra: Environment variables to add to the inherited ones.
        seconds: The time limit.
    """
    # An activated environment must not override the one named on the command line.
    inherited = {name: value for name, value in os.environ.items()
                 if name not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "__PYVENV_LAUNCHER__"}}
    try:
        # Build folders go here too, so they are removed with it; the next gilscope removes those of a killed one.
        with tempfile.TemporaryDirectory(prefix=temporary.prefix("install"), ignore_cleanup_errors=True) as folder:
            return run(command, timeout=seconds, env={**inherited, "TMPDIR": folder, **extra})
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name} did not end within {seconds:.0f} s"
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"


def gave_up(output: str) -> str:
    """Return why pip or uv stopped retrying the index, in its words, or "" if it did not.

    Lines about earlier failed attempts do not count, since a later attempt may have succeeded.
    """
    line = next((line.strip() for line in output.splitlines() if _GAVE_UP.search(line)), "")
    return line.rpartition("broken by ")[2] or line


def shortened(reason: str) -> str:
    """Return an installer's error output in one line of at most 300 characters."""
    return str(problem_in(reason))


def problem_in(reason: str) -> InstallProblem:
    """Return the problem reported in an installer's error output, shortened to one line."""
    plain = uncoloured(reason)
    words = " ".join(plain.split())
    if _UV_UNKNOWN.search(words):
        return NOT_FOUND
    if _UV_NO_VERSION.search(words):
        return NO_SUCH_VERSION
    if _UV_UNREACHED.search(words):
        return InstallProblem(f"{INDEX_UNREACHED}: {_error_of(plain)}", kind=InstallProblemKind.UNREACHED)
    if _PIP_UNREACHED.search(words):
        return InstallProblem(INDEX_UNREACHED, kind=InstallProblemKind.UNREACHED)
    return WITHOUT_WHEEL if _NONE.search(words) else InstallProblem(_error_of(plain))


def problem_in_verbose_output(output: str) -> InstallProblem:
    """Return the problem with a requirement that pip could not satisfy, from its output with -vv."""
    if _CANDIDATE.search(output):
        return WITHOUT_WHEEL
    if unanswered := _UNANSWERED.search(output):
        why = textwrap.shorten(unanswered[1] or unanswered[2], 200, placeholder="...")
        return InstallProblem(f"{INDEX_UNREACHED}: {why}", kind=InstallProblemKind.UNREACHED)
    return NOT_FOUND


def other_versions(reason: str) -> InstallProblem | None:
    """Return a problem that names the versions with a wheel, or None if pip lists no version."""
    match = _VERSIONS.search(reason)
    if match is None:
        return None
    newest = match[1].split(", ")[-SHOWN_VERSIONS:]
    return InstallProblem(f"no requested version has a wheel for this build; other versions with one: "
                          f"{', '.join(newest)}", kind=InstallProblemKind.NO_WHEEL)


def unmatched_requirement(reason: str) -> str | None:
    """Return the requirement that pip found no file for: the requested package or one of its dependencies."""
    match = _UNMATCHED.search(reason)
    return match[1].partition(" (from ")[0].strip() if match else None


def packages_without_file(reason: str) -> list[str]:
    """Return the names of packages, as pip or uv writes them, for which it reports that it found no file."""
    return [name.rstrip(".-") for name in _WITHOUT_FILE.findall(reason)]


def unmet_needs(output: str) -> list[str]:
    """Return the names of packages that others need and that are not installed, from the output of `pip check`."""
    return _UNMET.findall(output)


def available_versions(output: str) -> list[str]:
    """Return the versions in the output of `pip index versions`; empty if it lists none."""
    match = _AVAILABLE.search(output)
    return match[1].split(", ") if match else []


def listed_files(output: str) -> list[str]:
    """Return the names of the wheels and sdists in an index, sorted, from pip's output with -vvv."""
    return sorted(set(_FILE.findall(output)))


def is_conflict(reason: str) -> bool:
    """Return True if pip found no compatible set of versions."""
    return "ResolutionImpossible" in reason


def unavailable_packages(output: str) -> list[str]:
    """Return the packages without a file for this build, from pip's output about rejected versions."""
    match = _UNAVAILABLE.search(output)
    return match[1].split() if match else []


def _error_of(plain: str) -> str:
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"error|caused by|.*cause:", line, re.IGNORECASE)] or lines[-1:]
    return textwrap.shorten(" ".join(errors), 300, placeholder="...")
