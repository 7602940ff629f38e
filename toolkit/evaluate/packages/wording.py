"""Phrases about a package, for sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.doctor import version_of
from gilscope.toolkit.evaluate.packages.evidence import Status
from gilscope.toolkit.evaluate.packages.judge import gil_users
from gilscope.toolkit.units import few, inflect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.packages.evidence import ImportStep, InterpreterReason


def name_and_version(finding: Finding) -> str:
    """Return name and version; for a package that could not be installed, the version on the build with the GIL."""
    return f"{finding.name} {version_of(finding)}".strip()


def judged(status: Status, why: str) -> str:
    """Return the words that follow the package's name in a sentence: its status, and the reason unless it is ""."""
    if not why:
        return f" {status.clause}"
    if status is Status.HANG:
        return f" {why}"   # which says how long was waited
    # An installer's reason already says that nothing was installed.
    return f": {why}" if status.not_installed else f" {status.clause}: {why}"


def newest_clause(report: BuildReport, finding: Finding) -> str:
    """Return what the newest version of a package in the way does: "7.0, the newest, mends it"; "" if not known."""
    if finding.name not in report.newest:
        return ""
    version, status = report.newest[finding.name]
    if version in {"", finding.version}:
        here = version_of(finding)   # "": no index has the package
        return f"{here} is the newest" if here else ""
    too = ", too" if status is finding.verdict.status else ""
    return f"{version}, the newest, {'mends it' if status.mends else f'{status.clause}{too}'}"


def chain_clause(finding: Finding) -> str:
    """Return the chain of dependencies to a package that the user did not request, whose owner can be asked; or ""."""
    return f"needed by {' -> '.join(finding.way[:-1])}" if len(finding.way) > 1 else ""


def refusals(reasons: Sequence[InterpreterReason]) -> str:
    """Return the reasons, with the modules that interpreters refuse in one sentence."""
    names = list(dict.fromkeys(each.refused for each in reasons if each.refused))
    others = [each.text for each in reasons if not each.refused]
    support = inflect(len(names), "supports", "support")
    said = [f"{few(names)} {support} no interpreter with its own GIL"] if names else []
    return few([*said, *others], between="; ")


def why(report: BuildReport, finding: Finding) -> str:
    """Return the reasons for a finding's status; of a package that turns the GIL on, how a program gets there."""
    if finding.verdict.status is not Status.GIL:
        return few(finding.verdict.reasons, between="; ")
    culprits = gil_users(finding.seen)
    how = {"hook": "as its slots say", "import": "seen at import"}
    first = next(iter(culprits))
    seen_by = " and ".join(text for word, text in how.items() if word in culprits[first])
    names = few(tuple(culprits))
    way = next((way for name in culprits if (way := report.way_to(name))), ())
    via = f"; loaded through {' -> '.join(_modules(way))} ({_place(way[0])})" if way else ""
    return f"{names} {inflect(len(culprits), 'needs', 'need')} the GIL ({seen_by}){via}"


def _place(step: ImportStep) -> str:
    """Return file and line, the file from its site-packages on."""
    return f"{step.file.rpartition('/site-packages/')[2]}:{step.line}"


def _modules(way: Sequence[ImportStep]) -> list[str]:
    found: list[str] = []
    for step in way:
        if not found or found[-1] != step.module:
            found.append(step.module)
    return found
