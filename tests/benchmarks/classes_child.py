"""Import modules in the build that runs this script and record the outcome; independent of gilscope.

    python classes_child.py OUT {main,inside,alone} FILE    FILE: JSON, a list of modules, or for `alone` {name: path}

`main` imports in the main interpreter, `inside` twice in a fresh one with its own GIL, `alone` loads single extension
files in a fork each, without their packages.
"""

import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import warnings
from pathlib import Path

IMPORTS = r"""
import json, os, sys
def write(**fields):
    handle = os.open(OUT, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, json.dumps(fields).encode() + b"\n")
    os.close(handle)
def compiled():
    found = set()
    for name, module in list(sys.modules.items()):
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        if isinstance(origin, str) and origin.endswith(".so") and "site-packages" in origin: found.add(name)
    return found
before = compiled()
with open(STEPS) as source: steps = json.load(source)
for name in steps:
    write(begin=name, turn=TURN)
    error = ""
    try: __import__(name)
    except BaseException as problem: error = type(problem).__name__ + ": " + str(problem)[:200]
    now = compiled()
    write(step=name, error=error, loaded=sorted(now - before), turn=TURN)
    before = now
"""
LIMIT = 60    # seconds for one extension file
TURNS = 2     # what an interpreter leaves behind breaks the next one


def main() -> None:
    """Run the mode that the command line names."""
    out, mode, steps = sys.argv[1:]
    sys.argv[1:] = []    # some packages read the command line
    given = {"OUT": out, "STEPS": steps}
    if mode == "main":
        exec(IMPORTS, {**given, "TURN": 0})   # the same text as in other interpreters
    elif mode == "inside":
        inside(given)
    else:
        for name, file in json.loads(Path(steps).read_text()).items():
            alone(Path(out), name, file)


def inside(given: dict[str, str]) -> None:
    """Import in an interpreter with its own GIL, end that, and again."""
    import _interpreters

    for turn in range(TURNS):
        ident = _interpreters.create("isolated")
        head = "".join(f"{name} = {value!r}\n" for name, value in {**given, "TURN": turn}.items())
        _interpreters.run_string(ident, head + IMPORTS)
        _interpreters.destroy(ident)


def alone(out: Path, name: str, file: str) -> None:
    """Load one extension file in a fork; record the module for which the GIL was turned on."""
    if pid := os.fork():
        os.waitpid(pid, 0)
        return
    signal.alarm(LIMIT)
    warned = []
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_, **__: warned.append(str(message))
    spec = importlib.machinery.ModuleSpec(name, importlib.machinery.ExtensionFileLoader(name, file), origin=file)
    try:
        importlib.util.module_from_spec(spec)
    except BaseException as problem:  # noqa: BLE001  whatever it is, the GIL is what is asked about
        warned.append(repr(problem))
    with out.open("a") as answers:
        answers.write(json.dumps({"alone": name, "warned": " ".join(warned)}) + "\n")
    os._exit(0)


if __name__ == "__main__":
    main()
