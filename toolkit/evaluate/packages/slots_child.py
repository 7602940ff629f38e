"""Read from extension files what they declare about the GIL and about multiple interpreters.

Runs inside the build that would load them.  Each file's init hook is called in its own fork, because a single-phase
hook runs arbitrary code that may crash, hang or exit; only slots are read, no exec slot is run.

Source: PEP 489 (multi-phase), PEP 793 (PyModExport), Include/moduleobject.h and Include/slots.h of CPython 3.12-3.15.
"""

from __future__ import annotations

import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Iterator
    from typing import Any

POINTER = 8
HEADER = object.__basicsize__        # size of PyObject_HEAD in this build; ob_type is its last field
FIELDS_BEFORE_SLOTS = 7              # m_init, m_index, m_copy, m_name, m_doc, m_size, m_methods; then m_slots
RECORD = 16                          # {int, padding, void *}, and since 3.15 {uint16, uint16, uint32, 8 bytes}
MOST_SLOTS = 256                     # a longer table has no end marker
ANSWERED = 77                        # exit code of a fork that has answered; an init function may call exit(0)
DEEPEST = 5                          # _PySlot_MAX_NESTING
# Since 3.15 there are new identifiers beside the old ones, with the same meaning in a module's table.
INTERPRETERS, GIL = {3, 86}, {4, 87}
ABI = 109
SUBSLOTS, MODULE_SLOTS = 92, 94      # nested tables: of new records, of old ones
INTERPRETER_WORDS = {0: "none", 1: "shared-gil", 2: "own-gil"}


def main() -> None:
    """Answer for every file of the job that the command line names: one JSON object on each line, in order."""
    from gilscope.toolkit.children.child import bound_files
    from gilscope.toolkit.processes import lifeline
    from gilscope.toolkit.processes.sealed_answers import Seal

    lifeline.restore_defaults()
    with open(sys.argv[1], encoding="utf-8") as source:
        job = json.load(source)
    sys.path.extend(job["path"])
    bound_files()
    import ctypes  # before the forks, because each of them would have to import it

    ctypes.PyDLL(None)
    for number, (name, path) in enumerate(job["files"]):
        _answer(lambda record, number=number: _write(job["answers"], Seal(job["secret"]).line(  # type: ignore[misc]
            {"number": number, **record})), name, path, job["limit"])


def _answer(write: Callable[[dict[str, Any]], None], name: str, path: str, limit: float) -> None:
    pid = os.fork()
    if not pid:
        # Anything that a foreign hook raises, even SystemExit, is the answer for this file.
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)    # ends the process even if no Python code runs
            signal.setitimer(signal.ITIMER_REAL, limit)
            found = read(name, path)
        except BaseException as error:  # noqa: BLE001  see above
            found = {"problem": f"{type(error).__name__}: {error}"}
        write(found)
        os._exit(ANSWERED)
    _, status = os.waitpid(pid, 0)
    if problem := _ending(os.waitstatus_to_exitcode(status), limit):
        write({"problem": problem})


def _ending(code: int, limit: float) -> str:
    if code == -signal.SIGALRM:
        return f"its init function did not return within {limit:g} s"
    if code < 0:
        return f"its init function crashed: {signal.Signals(-code).name}"
    return f"its init function ended the process with exit code {code}" if code != ANSWERED else ""


def _write(answers: str, line: bytes) -> None:
    from gilscope.toolkit.processes.sealed_answers import write_all

    handle = os.open(answers, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    write_all(handle, line)
    os.close(handle)


def read(name: str, path: str) -> dict[str, Any]:
    """Return the declarations of the extension file `path`, imported as `name`.

    Returns:
        `init`: "multi-phase", "single-phase" or "export"; `gil`: "used", "not-used", or None if undeclared on a build
        with a GIL; `interpreters`: "none", "shared-gil" or "own-gil".

    Raises:
        OSError: The file cannot be loaded; a library that it needs may be missing.
        LookupError: It has no init function of that name.
        ValueError: The init function did not return a module definition.
        Exception: Whatever the init function raises.
    """
    import ctypes

    library = ctypes.PyDLL(path)
    suffix = _suffix(name)
    if sys.version_info >= (3, 15) and (export := _function(library, f"PyModExport{suffix}")):
        return _declared("export", export())
    hook = _function(library, f"PyInit{suffix}")
    if hook is None:
        raise LookupError(f"it has no function PyInit{suffix}")
    address = hook()
    kind = _pointer(address + HEADER - POINTER) if address else None
    if not kind:
        raise ValueError("its init function returned nothing that is initialised")
    if kind == ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "PyModuleDef_Type")):
        return _declared("multi-phase", _pointer(address + HEADER + FIELDS_BEFORE_SLOTS * POINTER))
    if suffix.startswith("U_"):
        raise ValueError("a name that is not ASCII takes multi-phase initialisation")
    return {"init": "single-phase", "gil": module_gil(ctypes.cast(address, ctypes.py_object).value),
            "interpreters": "none"}


def _suffix(name: str) -> str:
    """Return the part of the hook's name after PyInit.  Source: PEP 489, "Export Hook Name"."""
    last = name.rpartition(".")[2]
    if last.isascii():
        return "_" + last.replace("-", "_")
    return "U_" + last.encode("punycode").decode("ascii").replace("-", "_")


def _function(library: ctypes.PyDLL, name: str) -> Any:
    import ctypes

    try:
        function = library[name]
    except AttributeError:
        return None
    function.restype = ctypes.c_void_p   # Not py_object: the result may be an object that was never initialised.
    return function


def _pointer(address: int) -> int | None:
    import ctypes

    return ctypes.c_void_p.from_address(address).value


def _declared(init: str, table: int | None) -> dict[str, Any]:
    """Return the declarations in a table of slots, with the build's defaults for missing ones."""
    gil = "used" if free_threaded() else None
    interpreters = "shared-gil"
    found = list(_slots(table, depth=1))
    if init == "export" and ABI not in {ident for ident, _ in found}:
        raise ValueError("its table has no Py_mod_abi slot, without which it is not loaded")
    for ids, what in ((GIL, "GIL"), (INTERPRETERS, "interpreters")):
        if sum(ident in ids for ident, _ in found) > 1:
            raise ValueError(f"its table has more than one {what} slot, with which it is not loaded")
    for ident, value in found:
        if ident in GIL:
            gil = "not-used" if value == 1 else "used"
        elif ident in INTERPRETERS:
            interpreters = INTERPRETER_WORDS.get(value, interpreters)
    return {"init": init, "gil": gil, "interpreters": interpreters}


def _slots(table: int | None, *, depth: int) -> Iterator[tuple[int, int]]:
    """Yield identifier and value of the slots in a table and in nested tables.

    Both kinds of record have the identifier first and the value in the second half; the new one has flags between them.
    """
    import ctypes

    if depth > DEEPEST:
        raise ValueError("its tables of slots are nested too deep")
    for number in range(MOST_SLOTS if table else 0):
        assert table is not None
        # In an old record the identifier is an int, but builds with new records use only 16 bits of it.
        ident = ctypes.c_uint16.from_address(table + number * RECORD).value
        if not ident:
            return
        value = ctypes.c_uint64.from_address(table + number * RECORD + RECORD // 2).value
        if ident in {SUBSLOTS, MODULE_SLOTS}:
            yield from _slots(value, depth=depth + 1)
        else:
            yield ident, value
    if table:
        raise ValueError("its table of slots has no end")


def free_threaded() -> bool:
    """Return True if this build can run without the GIL."""
    return "t" in sys.abiflags


def module_gil(module: object) -> str | None:
    """Return "used" or "not-used", the flag inside a module object; None if the build has no such flag."""
    import ctypes

    if not free_threaded():
        return None
    if not isinstance(module, type(sys)):
        return "used"   # only modules can declare that they need no GIL: see _PyImport_CheckGILForModule
    offset, not_used = _gil_flag()
    return "not-used" if ctypes.c_uint8.from_address(id(module) + offset).value == not_used else "used"


def _gil_flag() -> tuple[int, int]:
    """Return the offset of the GIL flag in a module object, and its value if the GIL is not needed.

    The flag is set to find it: its place and its sense differ between versions (md_gil, md_requires_gil).
    """
    import ctypes

    module = type(sys)("gilscope_probe")
    size = type(sys).__basicsize__
    states = []
    for value in (0, 1):   # Py_MOD_GIL_USED, Py_MOD_GIL_NOT_USED
        set_gil = ctypes.pythonapi.PyUnstable_Module_SetGIL
        set_gil.argtypes = [ctypes.py_object, ctypes.c_void_p]
        set_gil(module, value)
        states.append(ctypes.string_at(id(module) + HEADER, size - HEADER))
    (place,) = (i for i in range(size - HEADER) if states[0][i] != states[1][i])
    return HEADER + place, states[1][place]
