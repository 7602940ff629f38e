"""The interfaces of a runner, a concurrency model, and of a pool, its open form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Shared = Literal["counter", "dict", "list", "object"]
Payload = Any
Result = Any
Task = Callable[..., Any]
Dash = Literal["solid", "dashes", "dots", "dash-dot", "short dashes", "dash-dots"]

HARDEST = 9   # the effort of a model that no advice prefers for its simplicity


class Appearance(NamedTuple):
    """The appearance of a model in pages and figures: distinct in colour and in form, for print without colours.

    Colours are of Okabe & Ito (2008), "Color Universal Design", https://jfly.uni-koeln.de/color/; related models share
    one and differ in the marker.
    """

    colour: str            # "#RRGGBB"
    marker: str            # matplotlib's letter; `toolkit/site/charts` has a shape for each
    dash: Dash = "solid"   # of lines
    hatch: str = ""        # of bars, in matplotlib's signs


class Pool(Protocol):
    """Workers that are up and waiting."""

    def map(self, task: Task, payloads: Sequence[Payload]) -> list[Result]:
        """Run every payload, return the results in order, raise the first task's exception with its traceback."""


class Runner(Protocol):
    """A concurrency model and its properties; tables have the order of `RUNNERS`.

    Attributes:
        name: The name on the command line, in tables and in stored runs.
        summary: One line for `gilscope list`.
        parallel: True if its workers can run Python code on more than one core at once.
        awaits: True if it takes the async form of a task where there is one; its workers are then tasks in flight.
        shares: The objects that its workers can share.
        gil: True: the GIL must be on; False: it must be off; None: either.
        isolated: True if its workers are interpreters with their own GIL, which not every module supports.
        pickles: True if tasks and results are pickled.
        family: The name that variants of one model share: `--models FAMILY` selects them all, and figures draw them
            alike.  Empty: the model's own name.
        package: The requirement that it needs beside the standard library; then it is measured only when named.
        effort: How much of a program changes to use it, from 1 (threads in place); advice prefers the least of several
            models that are equally fast.
        appearance: Its colour and mark; None: those of all models without their own.
    """

    name: str
    summary: str
    parallel: bool
    awaits: bool = False
    shares: frozenset[Shared] = frozenset()
    gil: bool | None = None
    isolated: bool = False
    pickles: bool = False
    family: str = ""
    package: str = ""
    effort: int = HARDEST
    appearance: Appearance | None = None

    def unavailable(self) -> str | None:
        """Return the reason why this build, as this process runs it, cannot use the model, or None."""

    def pool(self, workers: int, shared: Shared | None = None) -> AbstractContextManager[Pool]:
        """Return a context manager whose entry starts every worker and waits until each is ready."""
