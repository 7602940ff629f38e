"""Interpreters with a GIL of their own, by whatever module a build has for them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def interpreters_module() -> Any:
    """Return the module that makes interpreters with a GIL of their own; None where there is none."""
    # 3.13 and later; before 3.14 there is no public module for them.
    try:
        import _interpreters  # type: ignore[import-not-found]  # private, without stubs
    except ImportError:
        pass
    else:
        return _interpreters
    try:
        import _xxsubinterpreters  # type: ignore[import-not-found]  # likewise
    except ImportError:
        return None
    return _xxsubinterpreters


def run_in(interpreters: Any, ident: Any, script: str) -> str | None:
    """Run `script` in an interpreter; return what it raised."""
    try:
        problem = interpreters.run_string(ident, script)
    except Exception as error:  # noqa: BLE001  3.12 raises where 3.13 returns
        return str(error)
    return None if problem is None else str(getattr(problem, "formatted", problem))
