"""Watch the loading of extension modules in this process: who imports them, and whether they turn the GIL on.

Uses the standard library alone and is loaded in two ways: imported by the process that tests packages and by `pytest
--gil=off`, and by its path by the witness in a test run, because none of our modules may be in the project's process.
"""

from __future__ import annotations

import _imp
import os
import sys
from itertools import islice

LONGEST_CHAIN = 100   # frames; a test runner takes about thirty
# A folder that, on PYTHONPATH, makes every Python record into the file that the variable names.
WITNESS = os.path.join(os.path.dirname(__file__), "witness")
VARIABLE = "GILSCOPE_WITNESS"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any


def watch_extension_loads(
    before: Callable[[Any, FrameType], None], after: Callable[[Any, object, BaseException | None, bool], None],
) -> None:
    """Call `before` and `after` around each load of an extension module, from now on.

    Args:
        before: Takes the module's spec, and the frame that loads it.
        after: Takes the spec, the module or None, the exception or None, and True if the GIL was turned on meanwhile.
    """
    create = _imp.create_dynamic

    def create_dynamic(spec: Any, file: Any = None) -> Any:
        was_on = gil_is_on()
        before(spec, sys._getframe(1))  # the only way to see who imports
        try:
            module = create(spec) if file is None else create(spec, file)
        except BaseException as error:
            after(spec, None, error, gil_is_on() and not was_on)
            raise
        after(spec, module, None, gil_is_on() and not was_on)
        return module

    _imp.create_dynamic = create_dynamic


def record_extension_loads(path: str) -> int:
    """Append a JSON line to a file for each load of an extension module, and for each that turns the GIL on.

    Processes that are forked from this one append to the same file.  `load_records.py` reads it.

    Returns:
        A descriptor of the file, open until the process ends.
    """
    import json

    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)

    def write(**fields: object) -> None:
        os.write(handle, json.dumps({"pid": os.getpid(), **fields}).encode() + b"\n")  # appended as a whole

    def before(spec: Any, frame: FrameType) -> None:
        frames = islice(importing_frames(frame), LONGEST_CHAIN)
        write(load=spec.name, file=spec.origin, chain=[(each.f_code.co_filename, each.f_lineno) for each in frames])

    def after(spec: Any, _module: object, _error: object, flipped: bool) -> None:  # noqa: FBT001 - a callback's
        if flipped:
            write(flip=spec.name, thread=_other_thread())

    watch_extension_loads(before, after)
    import atexit

    atexit.register(lambda: write(gil=gil_is_on()))
    return handle


def _other_thread() -> str:
    """Return the name of this thread; "" in the main thread."""
    threading = sys.modules.get("threading")
    if threading is None:
        return ""
    thread = threading.current_thread()
    return "" if thread is threading.main_thread() else str(thread.name)


def gil_is_on() -> bool:
    """Return True if the GIL is enabled in this process."""
    ask = getattr(sys, "_is_gil_enabled", None)   # since 3.13
    return True if ask is None else bool(ask())


def forced() -> str:
    """Return the value of -X gil or PYTHON_GIL, "" if neither is given."""
    given = sys._xoptions.get("gil")
    return str(given) if given else "" if sys.flags.ignore_environment else os.environ.get("PYTHON_GIL", "")


def witness_variables(file: str) -> dict[str, str]:
    """Return the environment variables with which Pythons that are started record into a file."""
    folders = filter(None, [WITNESS, os.environ.get("PYTHONPATH", "")])
    return {VARIABLE: file, "PYTHONPATH": os.pathsep.join(folders)}


def importing_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames behind an import, innermost first, without those of the import system."""
    while frame is not None:
        if not frame.f_code.co_filename.startswith("<frozen"):
            yield frame
        frame = frame.f_back
