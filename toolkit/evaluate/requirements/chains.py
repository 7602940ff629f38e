"""By which way a project comes to need a package: through what it asks for itself.  Pure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def chains(needs: Mapping[str, Iterable[str]], asked: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return of each package the shortest way to it, from one that was asked for down to the package itself.

    Args:
        needs: Of each package the names of those that it needs.
        asked: Names of those that the user asks for.
    """
    found: dict[str, tuple[str, ...]] = {name: (name,) for name in asked}
    waiting = deque(found)
    while waiting:
        name = waiting.popleft()
        for needed in needs.get(name, ()):
            if needed not in found:
                found[needed] = (*found[name], needed)
                waiting.append(needed)
    return found


def asked_for(needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the packages that no other one needs: what somebody must have asked for; all where nothing is known."""
    needed = {each for name, others in needs.items() for each in others if each != name}
    return tuple(name for name in needs if name not in needed)
