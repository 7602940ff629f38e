"""Damage to the files of saved runs, drawn by a seed: whole values, whole files, single bytes."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.builds import ROOT

EXAMPLE = ROOT / "results" / "example"
SOURCES = (EXAMPLE, EXAMPLE / "second-worker", *(EXAMPLE / "experiments" / name for name in ("countdown", "convoy")))
HEADER = "run.json"
DEEP = 100_000
RAW = "\x00raw\x00"   # stands for JSON that Python's writer does not write
# What no field of a run can hold, save those of which any text or list is right.
IMPOSSIBLE = (
    None, [], {}, "", "x", True, -1, -1.5, 1.5, 1e300, -3, 1e-300, 10**400, -10**400, 2**70, f"{RAW}1e400", f"{RAW}NaN",
    f"{RAW}-Infinity", f"{RAW}{'[' * DEEP}{']' * DEEP}", f"{RAW}{'9' * 5000}", [[[]]], {"a": {"b": []}},
    "\x1b[31mred\x07", "\u202ereversed", "a\nb", "x" * 100_000, "../../etc/passwd",
)


@dataclass(frozen=True, slots=True)
class Damaged:
    """What was done to which run."""

    words: str
    source: Path
    believable: bool   # the file may say something else now that can be true: nothing tells


def damage(draw, target):
    """Copy a run to the new folder `target`, damage it, and return what was done."""
    source = draw.choice(SOURCES)
    target.mkdir()
    for file in source.glob("*.json"):
        shutil.copy(file, target)
    file = target / (HEADER if draw.random() < 0.4 else draw.choice(sorted(
        each.name for each in target.glob("*.json") if each.name != HEADER)))
    kind = draw.choice([*[replaced] * 4, lost, doubled, moved_round, shortened, bytes_changed, cut_off, odd_file])
    words, believable = kind(draw, file)
    return Damaged(f"{source.name}/{file.name}: {kind.__name__} {words}", source, believable)


def places(document, path=()):
    """Yield the path of every value in a JSON document, the outermost left out."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in entries:
        yield (*path, name)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, name))


def kind_of(path):
    """Return what a place is one of: of thousands of values the few others would hardly ever be drawn."""
    return tuple("" if isinstance(name, int) else name for name in path)


def _place(draw, document, *, wanted=lambda _: True):
    kinds = {}
    for path in places(document):
        if wanted(path):
            kinds.setdefault(kind_of(path), []).append(path)
    return draw.choice(draw.choice([kinds[key] for key in sorted(kinds)])) if kinds else None


def at(document, path):
    for name in path:
        document = document[name]
    return document


def _write(file, document):
    text = json.dumps(document)
    while (start := text.find('"\\u0000raw\\u0000')) >= 0:
        end = text.index('"', start + 1)
        text = text[:start] + text[start + len('"\\u0000raw\\u0000'):end] + text[end + 1:]
    file.write_text(text)


# What is not read for a number, or may be anything of its type.
FREE = frozenset({
    "notes", "options", "reason", "output", "kind", "hostname", "label", "seed", "skips", "source", "compiler",
    "config_args", "revision", "opt_level", "allocator", "jit", "executable", "base_executable", "version", "cpu_model",
    "system", "governor", "pgo", "lto", "debug", "memory_bytes", "cores", "free_threaded", "started",
    "stopped", "warmups", "cells", "rounds_planned", "rounds_done", "looks", "answered", "tail_call", "hypervisor",
    "microcode", "smt", "turbo", "gilscope_hash_seed",
})


def replaced(draw, file):
    """Put something impossible in a value's place."""
    document = json.loads(file.read_text())
    path = _place(draw, document)
    value = draw.choice(IMPOSSIBLE)
    at(document, path[:-1])[path[-1]] = value
    _write(file, document)
    name = next((each for each in reversed(path) if isinstance(each, str)), "")
    optional = {"gilscope_passes", "gilscope_began", "gilscope_tasks", "gilscope_demand", "gilscope_pss_bytes",
                "gilscope_rss_bytes"}
    believable = (FREE & {*path} != set() or (name in optional and value == "")
                  or (name in {"values", "gilscope_demand"} and value == 1.5)
                  or (name.startswith("gilscope_metric") and not str(value).startswith(RAW)))
    return f"{path} by {str(value)[:40]!r}", believable


def lost(draw, file):
    """Leave a field or an entry out."""
    document = json.loads(file.read_text())
    path = _place(draw, document)
    del at(document, path[:-1])[path[-1]]
    _write(file, document)
    # Cells may have fewer rounds than others, what a system does not tell is left out.
    return str(path), isinstance(path[-1], int) or FREE & {*path} != set() or str(path[-1]).startswith("gilscope_")


def doubled(draw, file):
    """Have an entry of a list a second time: a round, a cell, a benchmark, a build, a value."""
    document = json.loads(file.read_text())
    path = _place(draw, document, wanted=lambda each: isinstance(each[-1], int))
    holder = at(document, path[:-1])
    holder.insert(path[-1], holder[path[-1]])
    _write(file, document)
    return str(path), FREE & {*path} != set()


def moved_round(draw, file):
    """Have one process claim another round, or the run other rounds."""
    document = json.loads(file.read_text())
    if file.name == HEADER:
        document["rounds_done"] = claimed = draw.choice([99, -1, 999, 10**30])
        _write(file, document)
        return f"rounds_done {claimed}", False
    if (path := _place(draw, document, wanted=lambda each: each[-1] == "gilscope_round" and "runs" in each)) is None:
        return doubled(draw, file)   # the only round of each cell
    earlier = at(document, path)
    claimed = draw.choice([number for number in (0, 1, 99, 999, -1, 10**30) if number != earlier])
    at(document, path[:-1])["gilscope_round"] = claimed
    _write(file, document)
    return f"{path} from {earlier} to {claimed}", False


def shortened(draw, file):
    """Have fewer numbers in a list beside the values than there are values."""
    if file.name == HEADER:
        return cut_off(draw, file)
    document = json.loads(file.read_text())
    names = {"gilscope_cpu", "gilscope_began"}
    if (path := _place(draw, document, wanted=lambda each: each[-1] in names)) is None:
        return cut_off(draw, file)   # it has no such lists
    numbers = at(document, path).split()
    alone = len(numbers) < 2   # nothing is left of one
    at(document, path[:-1])[path[-1]] = "1e999" if alone else " ".join(numbers[1:])
    _write(file, document)
    return str(path), False


def bytes_changed(draw, file):
    """Change single bytes, as a bad disk does; a digit for a digit is as believable as what it was."""
    content = bytearray(file.read_bytes())
    for _ in range(draw.randint(1, 8)):
        content[draw.randrange(len(content))] = draw.randrange(256)
    file.write_bytes(content)
    return "", True


def cut_off(draw, file):
    """Keep the beginning alone."""
    content = file.read_bytes()
    kept = draw.randrange(len(content) - 2)
    file.write_bytes(content[:kept])
    return f"after {kept} bytes", False


def odd_file(draw, file):
    """Put something else than a file of JSON in its place."""
    kind = draw.choice(["folder", "pipe", "loop", "zero", "nothing", "empty", "binary", "deep", "not ours"])
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "loop":
        file.symlink_to(file.name)
    elif kind == "zero":
        file.symlink_to("/dev/zero")
    elif kind != "nothing":
        file.write_bytes({"empty": b"", "binary": bytes(range(256)) * 9, "deep": b"[" * DEEP,
                          "not ours": b'{"version": "1.0", "benchmarks": [{"runs": [{"values": [1.0]}]}]}'}[kind])
    return kind, False
