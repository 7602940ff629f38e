"""Functions around functions, and names that can be put back."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from toolkit.race.pure.monitor import Monitor

_MISSING: Any = object()
_COPIED = ("__module__", "__name__", "__qualname__", "__doc__")


def wrap(monitor: Monitor, original: Callable[..., Any], before: Callable[..., Any] | None,
         after: Callable[..., Any] | None, *, muted: bool) -> Callable[..., Any]:
    """Return a function like `original` that calls `before` and `after` around it.

    A call that fails shows one frame of this module in its traceback; the C core leaves none.
    """
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        state = None if before is None else before(*args, **kwargs)
        if muted:
            thread = monitor.threads.current()
            level = thread.muted
            thread.muted = level + 1
            try:
                result = original(*args, **kwargs)
            finally:
                thread.muted = level
        else:
            result = original(*args, **kwargs)
        if after is not None:
            after(state, result, *args, **kwargs)
        return result

    for name in _COPIED:
        value = getattr(original, name, _MISSING)
        if value is not _MISSING:
            setattr(wrapper, name, value)
    wrapper.__dict__.update(getattr(original, "__dict__", {}))
    wrapper.__wrapped__ = original     # type: ignore[attr-defined]  # as functools.wraps does
    return wrapper


def patch(owner: Any, name: str, replacement: object) -> Callable[[], None] | None:
    """Set an attribute and return what sets it back; None when it cannot be set."""
    before = vars(owner).get(name, _MISSING)
    try:
        setattr(owner, name, replacement)
    except (TypeError, AttributeError):
        return None

    def undo() -> None:
        if before is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    return undo
