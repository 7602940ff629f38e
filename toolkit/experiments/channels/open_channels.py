"""Opens the channels of `channels`, each kind as its users do, and closes what needs it."""

from __future__ import annotations

import os
import queue
import selectors
from collections import deque
from contextlib import contextmanager

from gilscope.runners import _interpreters
from gilscope.toolkit.experiments.channels import worker_roles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack
    from typing import Any


def open_channels(model: str, channel: str, number: int, stack: ExitStack) -> tuple[list[Any], list[Any], Any]:
    """Return so many channels, what of each travels to a worker, and multiprocessing's context where it is needed.

    `stack` closes what has to be closed.
    """
    context: Any = None
    if model.startswith("processes-"):
        import multiprocessing

        from gilscope.runners.processes import name_semaphores

        name_semaphores()
        context = multiprocessing.get_context(model.removeprefix("processes-"))
        if model == "processes-forkserver":
            context.set_forkserver_preload([])
    if model == "subinterpreters":
        _interpreters.prepare_main()
    links = [_channel(channel, context, stack) for _ in range(number)]
    addresses = [link.id if channel == "interpreters.Queue" else link for link in links]
    return links, addresses, context


def _channel(channel: str, context: Any, stack: ExitStack) -> Any:
    if channel == "SimpleQueue":
        return queue.SimpleQueue()
    if channel == "queue.Queue":
        return queue.Queue()
    if channel == "interpreters.Queue":
        return worker_roles.interpreters_module().create_queue()
    if channel == "multiprocessing.Queue":
        opened = context.Queue()
        stack.callback(opened.close)
        return opened
    if channel == "multiprocessing.Pipe":
        connections = context.Pipe(duplex=False)
        for each in connections:
            stack.callback(each.close)
        return connections
    descriptors = os.pipe()
    for descriptor in descriptors:
        stack.callback(os.close, descriptor)
    return descriptors


@contextmanager
def any_of(channel: str, links: list[Any]) -> Iterator[worker_roles.Receive]:
    """Return a function that waits for the next message on any of several pipes; the ready ones take turns."""
    ready: deque[worker_roles.Receive] = deque()
    with selectors.DefaultSelector() as selector:
        for link in links:
            selector.register(link[0], selectors.EVENT_READ, worker_roles.receiver(channel, link))

        def receive() -> Any:
            while not ready:
                ready.extend(key.data for key, _ in selector.select())
            return ready.popleft()()

        yield receive


def polling(channel: str) -> dict[str, float]:
    """Return how long the queue's own get() sleeps between two looks, as its signature says."""
    if channel != "interpreters.Queue":
        return {}
    import inspect

    parameter = inspect.signature(worker_roles.interpreters_module().Queue.get).parameters.get("_delay")
    return {} if parameter is None else {"poll": float(parameter.default)}
