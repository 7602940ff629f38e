"""Calling contexts: each distinct stack of callers is kept once, under a number."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from gilscope.toolkit.race.core import Place

_DEEPEST = 100     # callers that are kept; a report has no use for more
OURS = __file__.rpartition("pure")[0]     # the folder of the race checker


class Contexts:
    """Stacks by number; 0 is the empty one.  Under the guard."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._stacks: list[list[tuple[CodeType, int]]] = [[]]

    def of(self, frame: FrameType | None) -> int:
        """Return the number of the stack that ends in `frame`."""
        frames: list[tuple[CodeType, int]] = []
        key: list[int] = []
        while frame is not None and len(frames) < _DEEPEST:
            code = frame.f_code
            frames.append((code, frame.f_lasti))
            key += id(code), frame.f_lasti     # the ids stay true: the code is kept below
            frame = frame.f_back
        known = tuple(key)
        number = self._numbers.get(known)
        if number is None:
            number = self._numbers[known] = len(self._stacks)
            self._stacks.append(frames)
        return number

    def places(self, number: int) -> tuple[Place, ...]:
        """Return path, line and function of each frame, innermost first, without our own."""
        return tuple((code.co_filename, _line(code, at), code.co_qualname) for code, at in self._stacks[number]
                     if not code.co_filename.startswith(OURS))


def _line(code: CodeType, at: int) -> int:
    for start, end, line in code.co_lines():
        if start <= at < end and line is not None:
            return line
    return code.co_firstlineno
