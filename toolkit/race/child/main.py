"""The checked process: starts the checker, then becomes the program, in the state that `python script.py` would have.

The interpreter runs `boot`; from here on `__main__` is the program's module.  Its names go into the dict that the
interpreter made, so whatever holds that dict sees the program.
"""

from __future__ import annotations

import atexit
import builtins
import os
import sys
from importlib.machinery import SourceFileLoader

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.programs import COMMAND, MODULE, STDIN
from gilscope.toolkit.race.program import spec as specs
from gilscope.toolkit.race.session import RaceSession

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import CodeType, FrameType, TracebackType
    from typing import Any

    from gilscope.toolkit.race.confirm.ops import ConfirmingSession
    from gilscope.toolkit.race.program.spec import CheckedRunSpec
else:
    import _signal as signal  # without its enums, which take 5 ms to import

OURS = "gilscope."   # the beginning of our modules' names; our import hooks hide their file names
BOOT = os.path.join(os.path.dirname(__file__), "boot.py")
GIVEN = frozenset({"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__annotations__", "__builtins__",
                   "__file__", "__cached__"})   # names that the interpreter puts into `__main__`
caching: tuple[bool, str | None] = (False, None)   # sys.dont_write_bytecode, pycache_prefix: as `boot` found them
interruptible = False   # True if `boot` replaced Python's own handler of SIGINT
LIFELINE_NUMBER = 200   # the lowest descriptor of the lifeline, so the program's files get their usual numbers


def main(spool: str) -> None:
    """Run the program of the spec in `spool`."""
    spec = specs.read(spool)
    if spec.kind == COMMAND:
        _refuse_unless_there(spec.name, spool)
    as_module = spec.kind in {MODULE, COMMAND}
    sys.argv[:] = ["-m" if as_module else spec.name, *spec.args]
    sys.orig_argv[:] = spec.words()
    if spec.lifeline >= 0:
        _hold(spec.lifeline)
    session = _confirmation(spec, spool) if spec.pauses else _session(spec, spool)
    sys.dont_write_bytecode, sys.pycache_prefix = caching   # all our modules are imported
    names = sys.modules["__main__"].__dict__
    for name in set(names) - GIVEN:
        del names[name]
    with open(spool + "/" + specs.BEGUN, "w") as begun:
        begun.write(session.core.name)
    run = _as_module if as_module else _as_stdin if spec.kind == STDIN else _as_script
    try:
        run(spec.name, names, session)
    except BaseException:
        _hide_our_frames()
        raise


def _refuse_unless_there(module: str, spool: str) -> None:
    """End the process if a command is neither a script on PATH nor a module of this build."""
    from importlib.util import find_spec

    if find_spec(module.partition(".")[0]) is None:
        specs.refuse(spool, f"no command {module!r} for this Python: it has no such module, and PATH no such script of "
                     f"Python's; `{sys.executable} -m pip install` may get it")


def _session(spec: CheckedRunSpec, spool: str) -> RaceSession:
    session = RaceSession(spool=spool, include=spec.include, options=spec.options)
    try:
        session.start()
    except ToolkitError as error:
        specs.refuse(spool, str(error), error.exit_code)
    atexit.register(session.finish)   # registered before the program's own callbacks, so it runs after them
    return session


def _confirmation(spec: CheckedRunSpec, spool: str) -> ConfirmingSession:
    from gilscope.toolkit.race.confirm.ops import ConfirmingSession

    attempt, plans = spec.pauses
    confirmation = ConfirmingSession(spool, plans, attempt, spec.include, spec.options.get("root", ""))
    confirmation.start()
    return confirmation


def _as_script(path: str, names: dict[str, Any], session: RaceSession | ConfirmingSession) -> None:
    from gilscope.toolkit.programs.target import is_bundle, whole

    file = whole(path)
    if is_bundle(path):
        if sys.flags.safe_path:
            sys.path.insert(0, file)   # as the interpreter does
        _as_bundle(session)
        return
    names["__file__"] = file
    names["__loader__"] = SourceFileLoader("__main__", file)
    with open(path, "rb") as handle:
        source = handle.read()
    try:
        code = session.compile(source, file)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        # The program has not begun: let the interpreter report what is wrong with the file.
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606  no shell is wanted
    _execute(code, names, session)


def _as_stdin(_name: str, names: dict[str, Any], session: RaceSession | ConfirmingSession) -> None:
    names["__file__"] = "<stdin>"
    try:
        source = b"".join(iter(lambda: os.read(0, 65536), b""))
    except OSError:
        source = b""   # closed, as by `<&-`
    if not source.strip() and isinstance(session, RaceSession):
        specs.refuse(session.spool, "standard input is empty: there is no program in it to check")
    _execute(session.compile(source, "<stdin>"), names, session)


def _as_module(name: str, _names: dict[str, Any], session: RaceSession | ConfirmingSession) -> None:
    import runpy
    from importlib.util import find_spec

    if isinstance(session, RaceSession) and find_spec(name.partition(".")[0]) is None:
        with open(session.spool + "/" + specs.MISSING, "w", encoding="utf-8"):
            pass   # the interpreter says so, and the process that reads this knows where the module may be
    # The function that the interpreter calls for -m and for a folder.
    _call(session, runpy._run_module_as_main, name)  # type: ignore[attr-defined]  # noqa: SLF001


def _as_bundle(session: RaceSession | ConfirmingSession) -> None:
    import runpy

    _call(session, runpy._run_module_as_main, "__main__", False)  # type: ignore[attr-defined]  # noqa: FBT003, SLF001


def _execute(code: CodeType, names: dict[str, Any], session: RaceSession | ConfirmingSession) -> None:
    _call(session, builtins.exec, code, names)


def _call(session: RaceSession | ConfirmingSession, function: Callable[..., Any], *arguments: Any) -> None:
    """Call the function that runs the program.

    The core hides our frames below the program's own; that of a confirming run cannot.
    """
    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    alone = getattr(session.core, "alone", None)
    if alone is None:
        function(*arguments)
    else:
        alone(function, *arguments)


def _hide_our_frames() -> None:
    """Show the exception that ends the program without our frames."""
    hook = getattr(sys, "excepthook", None)
    plain_hook = sys.__excepthook__

    def once(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.last_traceback = error.__traceback__ = own = without_ours(trace)
        if hook is None:
            del sys.excepthook
            sys.stderr.write("sys.excepthook is missing\n")
            plain_hook(kind, error, own)
            return
        sys.excepthook = hook
        try:
            hook(kind, error, own)
        except SystemExit:
            raise
        except BaseException as failure:  # noqa: BLE001  the interpreter shows anything that a hook raises, too
            sys.stderr.write("Error in sys.excepthook:\n")
            failure.__traceback__ = without_ours(failure.__traceback__)
            plain_hook(type(failure), failure, failure.__traceback__)
            sys.stderr.write("\nOriginal exception was:\n")
            plain_hook(kind, error, own)

    sys.excepthook = once


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without its first entry, which is of what called the program, nor any other of ours."""
    found = entry = _next_foreign(trace)
    while entry is not None:
        entry.tb_next = after = _next_foreign(entry)
        entry = after
    return found


def _next_foreign(trace: TracebackType | None) -> TracebackType | None:
    """Return the first entry after `trace` that is not of our code."""
    after = trace.tb_next if trace else None
    while after is not None and _is_ours(after.tb_frame):
        after = after.tb_next
    return after


def _is_ours(frame: FrameType) -> bool:
    # `boot` runs in the program's own names.
    return str(frame.f_globals.get("__name__")).startswith(OURS) or frame.f_code.co_filename == BOOT


def _hold(lifeline: int) -> None:
    """Have the system kill this process when the one at the other end of `lifeline` ends: nobody would read the races.

    Where the system cannot do that (it takes Linux's F_SETSIG), go on without.

    Source: fcntl(2), F_SETOWN and F_SETSIG; pipe(7), O_ASYNC.
    """
    import fcntl

    try:
        line = fcntl.fcntl(lifeline, fcntl.F_DUPFD_CLOEXEC, LIFELINE_NUMBER)
    except OSError:
        line = -1   # fewer files are allowed than that
    os.close(lifeline)
    if line < 0 or not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(line, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    try:
        os.read(line, 1)
    except BlockingIOError:
        return
    os.kill(os.getpid(), signal.SIGKILL)   # the other end went while this process began: no signal will come any more
