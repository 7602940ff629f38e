"""Watch the loading of extension modules in this process: who imports them, and whether they turn the GIL on.

Uses the standard library alone and is loaded in two ways: imported by the process that tests packages, and by its path
by the witness in a test run, because none of our modules may be in the project's process.
"""

from __future__ import annotations

import _imp
import sys

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
        before(spec, sys._getframe(1))  # noqa: SLF001 - the only way to see who imports
        try:
            module = create(spec) if file is None else create(spec, file)
        except BaseException as error:
            after(spec, None, error, gil_is_on() and not was_on)
            raise
        after(spec, module, None, gil_is_on() and not was_on)
        return module

    _imp.create_dynamic = create_dynamic


def gil_is_on() -> bool:
    """Return True if the GIL is enabled in this process."""
    ask = getattr(sys, "_is_gil_enabled", None)   # since 3.13
    return True if ask is None else bool(ask())


def importing_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames behind an import, innermost first, without those of the import system."""
    while frame is not None:
        if not frame.f_code.co_filename.startswith("<frozen"):
            yield frame
        frame = frame.f_back
