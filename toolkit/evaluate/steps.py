"""Run each step of an evaluation at most once: announce it, and reuse its result while nothing has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.evaluate.cache import EvaluationCache
    from gilscope.toolkit.evaluate.request import EvaluationRequest


@dataclass(frozen=True, slots=True)
class EvaluationStep:
    """One step of an evaluation."""

    title: str    # for people
    result: Any   # its type, as which the cache reads the result of an earlier call
    depends: tuple[str, ...]   # names of the request's fields: other values of them have it measured again


class StepRunner:
    """Runs steps by their names, with their results in a cache."""

    def __init__(
        self, steps: Mapping[str, EvaluationStep], request: EvaluationRequest, *, depends: tuple[str, ...],
        cache: EvaluationCache | None, say: Callable[[str], None],
    ) -> None:
        """Run the steps named in `steps`.

        Args:
            steps: The steps by their names, in their order.
            request: The options of the call.
            depends: Builds and the like that every result depends on, besides files.
            cache: Results of earlier calls; None: keep none.
            say: Reports a step to the user.
        """
        self._steps = steps
        self._depends = {name: (*depends, *(str(getattr(request, each)) for each in step.depends))
                         for name, step in steps.items()}
        self._cache = cache
        self._say = say
        self.reused: dict[str, float] = {}   # titles of the steps that an earlier call has made, and when

    def once[Value](
        self, name: str, make: Callable[[], Value], *depends: str, enough: Callable[[Value], bool] = lambda _: True,
    ) -> Value:
        """Return the result of a step from the cache if it is `enough`, or make it now and store it."""
        title, number = self._steps[name].title, [*self._steps].index(name) + 1
        after = [*self._steps.values()][number:]
        then = f"; next: {after[0].title}" if after else ""
        if (value := self.earlier(name, *depends, enough=enough)) is not None:
            self._say(f"{number}/{len(self._steps)} {title}: nothing has changed since it was measured{then}")
            return cast("Value", value)
        why = self._cache.why_provisional(name, *self._depends[name], *depends) if self._cache else ""
        again = f" once more, as before: {why}" if why else ""
        self._say(f"{number}/{len(self._steps)} {title}{again}{then}")
        made = make()
        if self._cache:
            self._cache.put(name, made, *self._depends[name], *depends)
        return made

    def earlier(self, name: str, *depends: str, enough: Callable[[Any], bool] = lambda _: True) -> Any:
        """Return the result of a step from the cache; None if it is not there or something has changed."""
        step = self._steps[name]
        part = self._cache.get(step.result, name, *self._depends[name], *depends) if self._cache else None
        if part is None or not enough(part.value):
            return None
        self.reused[step.title] = part.made
        return part.value
