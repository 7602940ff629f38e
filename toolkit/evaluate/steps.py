"""Run each step of an evaluation at most once: announce it, and reuse its result while nothing has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.evaluate.cache import EvaluationCache


class StepRunner:
    """Runs steps by their names, with their results in a cache."""

    def __init__(
        self, titles: Mapping[str, str], *, depends: tuple[str, ...], cache: EvaluationCache | None,
        say: Callable[[str], None],
    ) -> None:
        """Run the steps named in `titles`.

        Args:
            titles: The title of each step for people, in the order of the steps.
            depends: Options and builds that every result depends on, besides files.
            cache: Results of earlier calls; None: keep none.
            say: Reports a step to the user.
        """
        self._titles = titles
        self._depends = depends
        self._cache = cache
        self._say = say
        self.reused: dict[str, float] = {}   # titles of the steps that an earlier call has made, and when

    def once[Value](self, name: str, make: Callable[[], Value], *depends: str) -> Value:
        """Return the result of a step from the cache, or make it now and store it."""
        title, number = self._titles[name], [*self._titles].index(name) + 1
        after = [*self._titles.values()][number:]
        then = f"; next: {after[0]}" if after else ""
        if (value := self.earlier(name, *depends)) is not None:
            self._say(f"{number}/{len(self._titles)} {title}: nothing has changed since it was measured{then}")
            return cast("Value", value)
        why = self._cache.why_provisional(name, *self._depends, *depends) if self._cache else ""
        again = f" once more, as before: {why}" if why else ""
        self._say(f"{number}/{len(self._titles)} {title}{again}{then}")
        made = make()
        if self._cache:
            self._cache.put(name, made, *self._depends, *depends)
        return made

    def earlier(self, name: str, *depends: str) -> Any:
        """Return the result of a step from the cache; None if it is not there or something has changed."""
        part = self._cache.get(name, *self._depends, *depends) if self._cache else None
        if part is None:
            return None
        self.reused[self._titles[name]] = part.made
        return part.value
