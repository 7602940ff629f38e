"""Inspect candidate interpreters, each in a child process with a time limit; cache the answers by path and mtime."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import parse_json, read_text
from gilscope.toolkit.processes.supervised import run
from gilscope.toolkit.records import from_plain, to_plain
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gilscope.toolkit.model import Build

CHILD = Path(__file__).with_name("inspect_child.py")
LIMIT_SECONDS = 10.0   # an interpreter answers within 0.1 s; a network disk or a saturated machine takes longer
SECOND_LIMIT = 3       # times that: for one that did not answer, asked again
CACHE_FORMAT = 2       # to be raised when inspect_child's answer changes
PARALLEL = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFacts:
    """An interpreter's description of itself, as `inspect_child` prints it."""

    implementation: str
    version: str
    executable: str
    base_executable: str
    free_threaded: bool
    debug: bool
    jit: str
    compiler: str
    flags: str
    config_args: str
    pymalloc: bool
    revision: str
    tail_call: bool


def inspect_all(candidates: Iterable[Path]) -> dict[Path, BuildFacts | str]:
    """Return every candidate's facts, or the reason why it gave none, in the order of the candidates."""
    paths = list(dict.fromkeys(candidates))
    remembered = _read_cache()
    stamps = {path: stamp for path in paths if (stamp := _stamp(path))}
    known = {path: facts for path, stamp in stamps.items() if (facts := remembered.get(stamp))}
    with ThreadPoolExecutor(PARALLEL) as pool:
        unknown = [path for path in paths if path not in known]
        asked = dict(zip(unknown, pool.map(_ask, unknown), strict=True))
    fresh = {stamps[path]: facts for path, facts in asked.items() if path in stamps and not isinstance(facts, str)}
    if fresh:
        _write_cache({**remembered, **fresh})
    return {path: known.get(path) or asked[path] for path in paths}


def is_environment(python: Path) -> bool:
    """Return True if a Python belongs to an environment with packages of its own, by venv or conda."""
    root = python.parent.parent
    return (root / "pyvenv.cfg").exists() or (root / "conda-meta").is_dir()


def keeps_environment(build: Build) -> bool:
    """Return True if a build is an environment of the user, into which gilscope never installs."""
    return build.source == "tox" or (
        build.source in {"explicit", "added"} and is_environment(Path(build.executable)))


def version_key(version: str) -> tuple[int, int, int, int, int, bool]:
    """Order versions: "3.15.0rc1" before "3.15.0", "3.14.7" before "3.14.7+" (a snapshot after it)."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?(\+?)", version)
    if not match:
        return (0, 0, 0, 0, 0, False)
    major, minor, micro, stage, serial, plus = match.groups()
    return (int(major), int(minor), int(micro), ("a", "b", "rc", None).index(stage), int(serial or 0), bool(plus))


def is_released(version: str) -> bool:
    """Return True for a final release or a snapshot after one ("3.14.7+"), False for "3.15.0rc1"."""
    return re.fullmatch(r"[\d.]+\+?", version) is not None


def opt_level(flags: str) -> str:
    """Return the optimization flag that counts, "-O0" when there is none: compilers take the last one."""
    levels = re.findall(r"(?:^|\s)(-O\S*)", flags)
    return levels[-1] if levels else "-O0"


def has_pgo(facts: BuildFacts) -> bool:
    """Return True if the build was optimized with a profile."""
    return "-fprofile-use" in facts.flags or _configured(facts.config_args, "optimizations")


def has_lto(facts: BuildFacts) -> bool:
    """Return True if the build was optimized while linking."""
    return "-flto" in facts.flags or _configured(facts.config_args, "lto")


def _configured(config_args: str, feature: str) -> bool:
    answer = False
    for word in shlex.split(config_args):
        if match := re.fullmatch(rf"--(enable|with|disable|without)-{feature}(?:=(\S+))?", word):
            answer = match[1] in {"enable", "with"} and match[2] != "no"
    return answer


def _ask(path: Path) -> BuildFacts | str:
    try:
        try:
            done = run([path, "-I", "-S", CHILD], timeout=LIMIT_SECONDS)  # a shim may start more than itself
        except subprocess.TimeoutExpired:
            done = run([path, "-I", "-S", CHILD], timeout=SECOND_LIMIT * LIMIT_SECONDS)
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"did not answer within {SECOND_LIMIT * LIMIT_SECONDS:g} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return f"ended with status {done.returncode}: {lines[-1] if lines else 'no output'}"
    return _parse(done.stdout) or "is not a Python: it printed something else than its description"


def _parse(text: str) -> BuildFacts | None:
    try:
        return from_plain(BuildFacts, json.loads(text))
    except ValueError:
        return None


def _stamp(path: Path) -> str:
    """Return a key that changes with the interpreter behind `path`, or "" if its files do not show that."""
    try:
        status = path.stat()
        with path.open("rb") as handle:
            if handle.read(2) == b"#!":
                return ""  # a shim: which interpreter it starts depends on more than the file
        environment = path.parent.parent / "pyvenv.cfg"
        changed = environment.stat().st_mtime_ns if environment.exists() else 0
    except OSError:
        return ""
    return f"{path}|{path.resolve()}|{status.st_mtime_ns}|{status.st_size}|{changed}"


def _read_cache() -> dict[str, BuildFacts]:
    try:
        cache = parse_json(read_text(_cache_file()))
        if cache["format"] != CACHE_FORMAT:
            return {}
        return {stamp: from_plain(BuildFacts, facts) for stamp, facts in cache["facts"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}  # none yet, damaged or from another version: everything is asked again


def _write_cache(facts: Mapping[str, BuildFacts]) -> None:
    target = _cache_file()
    # A cache that cannot be written costs the next start some time and nothing else.
    with contextlib.suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as handle:
            plain = {stamp: to_plain(each) for stamp, each in facts.items()}
            json.dump({"format": CACHE_FORMAT, "facts": plain}, handle)
        Path(handle.name).replace(target)


def _cache_file() -> Path:
    return cache_dir() / "builds.json"
