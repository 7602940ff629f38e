"""Print an interpreter's description of itself, one JSON object, to standard output.

Run by `find` as `python -I -S inspect_child.py` inside every candidate, whatever its version: plain old syntax only.
"""

import json
import os
import platform
import sys
import sysconfig


def describe() -> "dict[str, object]":
    """Return the facts of the running interpreter as a dictionary of plain values."""
    variables = sysconfig.get_config_vars()
    return {
        "implementation": sys.implementation.name,
        "version": platform.python_version(),
        "executable": sys.executable,
        "base_executable": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
        "free_threaded": bool(variables.get("Py_GIL_DISABLED")),
        "debug": hasattr(sys, "gettotalrefcount") or bool(variables.get("Py_DEBUG")),
        "jit": jit(str(variables.get("CONFIG_ARGS") or "")),
        "compiler": platform.python_compiler(),
        # What the core was compiled with, in the order the compiler saw it: the last -O counts.
        "flags": str(variables.get("PY_CORE_CFLAGS") or variables.get("CFLAGS") or ""),
        "config_args": str(variables.get("CONFIG_ARGS") or ""),
        "pymalloc": bool(variables.get("WITH_PYMALLOC")),
        "revision": platform.python_revision(),
        # New in 3.14; a build without it in pyconfig.h has none.
        "tail_call": bool(variables.get("Py_TAIL_CALL_INTERP")),
    }


def jit(config_args: str) -> str:
    """Return "no", "off" (built in, not on) or "on"."""
    module = getattr(sys, "_jit", None)
    if module is None:
        # 3.13 has the JIT but not the module that tells about it.
        if "--enable-experimental-jit=yes-off" in config_args:
            return "off"
        return "on" if "--enable-experimental-jit'" in config_args else "no"
    if module.is_enabled():
        return "on"
    return "off" if module.is_available() else "no"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(describe()))
