"""Decide whether two builds can be compared fairly, and choose the best available pair.

A ratio between builds is about the GIL only when nothing else differs: uv once shipped a debug free-threaded 3.13
beside a release one, and tables all over the web compared them (astral-sh/uv#8194).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.inspection import is_released, keeps_environment, version_key
from gilscope.toolkit.model import Build, Note

if TYPE_CHECKING:
    from collections.abc import Sequence

# The options of ./configure that affect speed and that no field of a Build covers.
SPEED_OPTIONS = {
    "--enable-shared": "the interpreter in a shared library",
    "--with-assertions": "assertions",
    "--enable-pystats": "statistics of the interpreter loop",
    "--with-trace-refs": "tracing of references",
    "--with-address-sanitizer": "the address sanitizer",
    "--with-thread-sanitizer": "the thread sanitizer",
    "--with-undefined-behavior-sanitizer": "the undefined-behaviour sanitizer",
    "--without-computed-gotos": "no computed gotos",
    "--with-dtrace": "DTrace probes",
    "--with-valgrind": "Valgrind support",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPair:
    """A build with the GIL and one without, and the other differences between them."""

    gil: Build
    free_threaded: Build
    mismatches: tuple[Note, ...]


def compare_builds(a: Build, b: Build) -> tuple[Note, ...]:
    """Return the differences between two builds other than the GIL; none if they can be compared fairly.

    A revision that one of them does not report is no difference.
    """
    differences = [
        _difference(a, b, "version", a.version, b.version),
        _difference(a, b, "source", a.revision, b.revision) if not _same_revision(a, b) else None,
        _difference(a, b, "compiler", a.compiler, b.compiler),
        _difference(a, b, "optimization level", a.opt_level, b.opt_level),
        _feature_difference(a, b, "profile-guided optimization (PGO)", on_a=a.pgo, on_b=b.pgo),
        _feature_difference(a, b, "link-time optimization (LTO)", on_a=a.lto, on_b=b.lto),
        _feature_difference(a, b, "debug checks", on_a=a.debug, on_b=b.debug),
        _difference(a, b, "allocator", _allocator_family(a), _allocator_family(b)),
        _feature_difference(a, b, "the JIT", on_a=a.jit == "on", on_b=b.jit == "on"),
        _feature_difference(
            a, b, "the tail-calling interpreter loop", on_a=_uses_tail_calls(a), on_b=_uses_tail_calls(b)),
        *(_feature_difference(a, b, what, on_a=_configured(a, option), on_b=_configured(b, option))
          for option, what in SPEED_OPTIONS.items()),
    ]
    return tuple(Note(text=text) for text in differences if text)


def best_pair(builds: Sequence[Build]) -> BuildPair | None:
    """Return the newest fair pair of one minor version, or the pair with the fewest mismatches if none is fair.

    A pair of final releases, or of builds that the user named, comes before one of pre-releases.

    None if all builds have the GIL, or all lack it.  Environments of the user other than tox's are left out: their
    packages differ from those of the other build.
    """
    builds = [build for build in builds if build.source == "tox" or not keeps_environment(build)]
    pairs = [
        BuildPair(gil=gil, free_threaded=free, mismatches=compare_builds(gil, free))
        for gil in builds if not gil.free_threaded for free in builds if free.free_threaded
    ]
    return max(pairs, key=_preference, default=None)


def _preference(pair: BuildPair) -> tuple[object, ...]:
    same_minor = pair.gil.minor == pair.free_threaded.minor
    fair = same_minor and not pair.mismatches
    newest = (version_key(pair.gil.version), version_key(pair.free_threaded.version))
    usual = not (pair.gil.debug or pair.free_threaded.debug)
    final = all(is_released(build.version) or build.source == "explicit" for build in (pair.gil, pair.free_threaded))
    # Fair pairs are ranked by version, unfair ones by the number of mismatches first.
    return (fair, usual, final, same_minor, 0 if fair else -len(pair.mismatches), newest, pair.gil.pgo)


def _difference(a: Build, b: Build, what: str, of_a: str, of_b: str) -> str | None:
    return None if of_a == of_b else f"{what}: {a.label} has {of_a}, {b.label} has {of_b}"


def _feature_difference(a: Build, b: Build, what: str, *, on_a: bool, on_b: bool) -> str | None:
    if on_a == on_b:
        return None
    with_it, without = (a, b) if on_a else (b, a)
    return f"{what}: {with_it.label} has it, {without.label} does not"


def _same_revision(a: Build, b: Build) -> bool:
    kinds = [build.revision.startswith("sha256:") for build in (a, b)]
    if not (a.revision and b.revision) or kinds[0] != kinds[1]:
        return True  # one is unknown, or one is of a tarball and the other a commit: not comparable
    # Commits are abbreviated to different lengths.
    return a.revision.startswith(b.revision) or b.revision.startswith(a.revision)


def _allocator_family(build: Build) -> str:
    # A free-threaded build can only use mimalloc, so pymalloc is its counterpart in a build with the GIL.
    return "malloc" if build.allocator == "malloc" else "pymalloc or mimalloc"


def _uses_tail_calls(build: Build) -> bool:
    """Return True if the interpreter loop uses tail calls, by the options of ./configure if it did not tell."""
    return _configured(build, "--with-tail-call-interp") if build.tail_call is None else build.tail_call


def _configured(build: Build, option: str) -> bool:
    words = shlex.split(build.config_args)
    return any(word == option or (word.startswith(f"{option}=") and not word.endswith("=no")) for word in words)
