"""An object in the way of scaling, as a reader of the program knows it."""

from __future__ import annotations

from dataclasses import dataclass

from gilscope.toolkit.scale.zygote_process import CodePlace  # noqa: TC001 - `from_plain` reads the hints


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedObject:
    """An object in the way of scaling, or the owner of some."""

    name: str           # as a reader knows it
    kind: str           # see `child.names`
    type: str
    count: int = 1      # of objects; more than one: those that this owner holds, itself among them
    argument: bool = False         # it is an argument of the function, or is in one
    held: float | None = None      # of a lock: the share of samples in which it was held
    places: tuple[CodePlace, ...] = ()     # lines of the program that use it, the first ones in a call
