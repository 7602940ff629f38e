"""The zygote in this process, for what no other process has: a test with its fixtures, in a fork of pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.scale.child.zygote import FailedMeasurementError, FunctionRefusedError, Zygote
from gilscope.toolkit.scale.zygote_process import LoadedFunction, UnscalableFunctionError, ZygoteClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType


class ZygoteHere(ZygoteClient):
    """Asks a zygote in this process."""

    def __init__(self, core: ModuleType, alive: Callable[[], object]) -> None:
        """Prepare to measure.

        Args:
            core: That of the race checker for this build.
            alive: Called before each request: a process whose function does not return calls it no more.
        """
        super().__init__()
        self._zygote = Zygote(core)
        self._alive = alive

    def take(self, name: str, make: Callable[[], Callable[..., object]], threads: int, arguments: Mapping[str, Any],
             ) -> LoadedFunction:
        """Take a function of this process, see `Zygote.take`.

        Raises:
            UnscalableFunctionError: It cannot be measured.
        """
        answer = self._ask(do="take", name=name, make=make, threads=threads, arguments=arguments)
        return LoadedFunction(**{name: answer[name] for name in LoadedFunction.__slots__})

    def _ask(self, **request: Any) -> Any:
        self._alive()
        try:
            return getattr(self._zygote, request.pop("do"))(**request)
        except (FailedMeasurementError, FunctionRefusedError) as error:
            raise UnscalableFunctionError(str(error)) from None
