"""Classify packages on a build by plain imports, independently of gilscope: the reference for `classes`.

The interpreter's own warning names the module that turned the GIL on; the sets of loaded files show missing C code.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

CHILD = Path(__file__).with_name("classes_child.py")
LIMIT = 180.0     # seconds for all imports of a package
RETRIES = 5       # without a module that ended the process
MOST = 300        # modules of a package
APART = re.compile(r"(tests?|testing|docs?|examples?|benchmarks?|scripts|conftest|test_.*|.*_test|__main__)")


@dataclass
class Package:
    """The contents of a distribution's RECORD."""

    tops: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    extensions: dict[str, str] = field(default_factory=dict)   # module name -> file
    compiled: bool = False


@dataclass
class Walk:
    """The outcome of importing modules one after another."""

    errors: dict[str, str]                        # module -> error; "" when there was none
    loaded: dict[str, set[str]]                   # module -> extension modules that came with it
    ended: dict[str, str] = field(default_factory=dict)   # module -> how the process ended there

    @property
    def all(self) -> set[str]:
        """All extension modules that were loaded."""
        return set().union(*self.loaded.values())


def package_in(environment: Path, name: str) -> Package | None:
    """Return a distribution of an environment; None when it is not there."""
    for info in environment.glob("lib/python3*/site-packages/*.dist-info"):
        text = (info / "METADATA").read_text(encoding="utf-8", errors="replace")
        told = re.search(r"^Name: *(\S+)", text, re.MULTILINE)
        if told and re.sub(r"[-_.]+", "-", told[1]).lower() == name:
            with (info / "RECORD").open(encoding="utf-8", newline="") as record:
                return _package(environment, info.parent, [row[0] for row in csv.reader(record) if row])
    return None


def _package(environment: Path, site: Path, files: list[str]) -> Package:
    shown = "import json, importlib.machinery as m; print(json.dumps(m.EXTENSION_SUFFIXES))"
    suffixes = json.loads(subprocess.check_output([environment / "bin" / "python", "-I", "-c", shown]))
    folders = {file.rpartition("/")[0] for file in files if re.search(r"/__init__\.([^/]*\.)?(py|so)$", file)}
    found = Package(compiled=any(file.endswith(".so") for file in files))
    for file in files:
        suffix = next((each for each in [*sorted(suffixes, key=len, reverse=True), ".py"] if file.endswith(each)), "")
        parts = file.removesuffix(suffix).split("/") if suffix else []
        if not parts or not all(part.isidentifier() for part in parts) or any(map(APART.fullmatch, parts)):
            continue
        last = parts[-1]
        parts = parts[:-1] if last == "__init__" and len(parts) > 1 else parts
        name = ".".join(parts)
        if suffix != ".py":
            symbols = subprocess.run(["nm", "-D", "--defined-only", site / file], capture_output=True, text=True,
                                     check=False).stdout
            # `apsw/__init__.so` has the hook of `apsw`.
            if not re.search(rf" (PyInit|PyModExport)_{parts[-1]}$", symbols, re.MULTILINE):
                continue
            found.extensions[name] = str(site / file)
        outermost = last == "__init__" and not any("/".join(parts[:depth]) in folders for depth in range(1, len(parts)))
        if (len(parts) == 1 or outermost) and not name.endswith("__mypyc"):
            found.tops.append(name)
        elif suffix == ".py":
            found.inner.append(name)
    found.inner = sorted(set(found.inner) - set(found.tops))[:MOST]
    # What a program imports: `sounddevice`, of which `_sounddevice` is a part.
    public = {name for name in found.tops if not name.startswith("_")}
    found.tops = sorted(public or set(found.tops))
    return found


def free_threading(name: str, environment: Path, twin: Path) -> str:
    """Return the class of a package on a free-threaded build, compared with the same version with a GIL."""
    here, there = package_in(environment, name), package_in(twin, name)
    if here is None:
        return "no-wheel"
    tops, reference = walk(environment, here.tops), walk(twin, there.tops if there else [])
    if tops.ended:
        return "hangs" if "hang" in tops.ended.values() else "crashes"
    if any(error and not reference.errors.get(top, "missing") for top, error in tops.errors.items()):
        return "cannot-be-imported"
    if turns_gil_on(environment, here):
        return "turns-gil-on"
    if there and lost(here, there, (environment, tops), (twin, reference)):
        return "loses-c-code"
    nothing = tops.errors and all(tops.errors.values())
    return "unknown" if nothing else "ready" if here.compiled or (there and there.compiled) else "pure-python"


def lost(here: Package, there: Package, on_build: tuple[Path, Walk], on_twin: tuple[Path, Walk]) -> bool:
    """Return True if compiled code is loaded only with the GIL, at the package's import or by any of its modules."""
    if there.compiled and not here.compiled:
        return True
    owned = _same(there.extensions)
    if owned & _same(on_twin[1].all) - _same(on_build[1].all):
        return True
    everything = [walk(place, [*package.tops, *package.inner, *package.extensions])
                  for package, (place, _) in ((here, on_build), (there, on_twin))]
    return bool(owned & _same(everything[1].all) - _same(everything[0].all))


def turns_gil_on(environment: Path, package: Package) -> set[str]:
    """Return the extension modules that turn the GIL on, each loaded in a separate process."""
    _, records = _run(environment, "alone", package.extensions)
    return {record["alone"] for record in records
            if f"enabled to load module '{record['alone']}'" in record.get("warned", "")}


def interpreters(name: str, environment: Path) -> str:
    """Return the class of a package in interpreters with their own GIL."""
    package = package_in(environment, name)
    if package is None:
        return "unknown"
    main = walk(environment, [*package.tops, *package.inner, *package.extensions])
    works = [module for module, error in main.errors.items() if not error]
    if not any(top in works for top in package.tops):
        return "unknown"
    inside = walk(environment, works, "inside")
    if inside.ended:
        return "hangs" if "hang" in inside.ended.values() else "crashes"
    if any(inside.errors.get(top) for top in package.tops):
        return "cannot-be-imported"
    lost = {module for module in main.all & set(package.extensions) if module not in inside.all}
    swallowed = {module for asking, loaded in main.loaded.items() for module in loaded & lost
                 if asking != module and not inside.errors.get(asking)}
    return "loses-c-code" if swallowed else "cannot-be-imported" if lost else "ok"


def walk(environment: Path, modules: list[str], mode: str = "main") -> Walk:
    """Import modules one after another; after a crash, try again without the module that caused it."""
    todo, ended = list(dict.fromkeys(modules)), {}
    for _ in range(RETRIES):
        end, records = _run(environment, mode, todo)
        steps = [record for record in records if "step" in record and record["turn"] == 0]
        found = Walk({step["step"]: step["error"] for step in steps},
                     {step["step"]: set(step["loaded"]) for step in steps}, ended)
        begun = [record["begin"] for record in records if "begin" in record]
        if not end or not begun:
            return found
        ended[begun[-1]] = end
        if mode == "inside":
            return found
        todo.remove(begun[-1])
    return found


def _run(environment: Path, mode: str, asked: object) -> tuple[str, list[dict]]:
    """Return how the process failed, or "", and its records."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        answers, steps = Path(folder, "answers"), Path(folder, "steps")
        steps.write_text(json.dumps(asked))
        process = subprocess.Popen(
            [environment / "bin" / "python", "-P", "-s", CHILD, answers, mode, steps], cwd=folder, env=variables,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            end = "crash" if process.wait(LIMIT) else ""
        except subprocess.TimeoutExpired:
            end = "hang"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        lines = answers.read_text().splitlines() if answers.exists() else []
        return end, [json.loads(line) for line in lines]


def _same(names) -> set[str]:
    """Return module names without the hashes in those that mypyc gives."""
    return {re.sub(r"[0-9a-f]{20}__mypyc$", "__mypyc", name) for name in names}
