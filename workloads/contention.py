"""Tasks that all use one shared object, and the same tasks with a private object each.

A task uses the shared object that it is given; without one it creates its own and runs the same code.  It leaves the
object as it found it, so that it does not grow from run to run; only the counter keeps its count.
"""


class Counter:
    """A number and the lock that guards it, as runners share it."""

    def __init__(self) -> None:
        import _thread  # built in; threading, which has the same lock, is 2 ms of import

        self.lock = _thread.allocate_lock()
        self.value = 0


class Box:
    """An object with one attribute, as runners share it."""

    def __init__(self) -> None:
        self.value = 0


def counter(steps: int, shared: Counter | None = None) -> tuple[int, int]:
    """Add 1 under the lock `steps` times.

    Returns:
        What the counter held just before the first and just after the last of them.
    """
    target = Counter() if shared is None else shared
    lock = target.lock
    with lock:
        first = target.value
        target.value = last = first + 1
    for _ in range(steps - 1):
        with lock:
            target.value = last = target.value + 1
    return first, last


def dictionary(steps: int, shared: dict[object, int] | None = None) -> int:
    """Count to `steps` in 16 entries of a dict that no other task touches; return their sum."""
    target: dict[object, int] = {} if shared is None else shared
    keys = [object() for _ in range(16)]
    for step in range(steps):
        key = keys[step % 16]
        target[key] = target.get(key, 0) + 1
    return sum(target.pop(key, 0) for key in keys)


def sequence(steps: int, shared: list[int] | None = None) -> int:
    """Append 1 to a list and pop, `steps` times each; return the sum of the popped values.

    A pop may take what another task appended, but the list is never empty then: each task appends before it pops.
    A lost append makes a pop fail.
    """
    target: list[int] = [] if shared is None else shared
    total = 0
    for _ in range(steps):
        target.append(1)
        total += target.pop()
    return total


def attribute(steps: int, shared: Box | None = None) -> int:
    """Write and read one attribute `steps` times; return the number of reads of a value that some task had written."""
    target = Box() if shared is None else shared
    target.value = 1
    sane = 0
    for step in range(steps):
        # Small integers are immortal: tasks contend for the attribute, not for a reference count.
        target.value = step & 127
        sane += 0 <= target.value < 128  # the mask above
    return sane


def refcount(steps: int, shared: Box | None = None) -> int:
    """Take and drop references to one object, `2 * steps` of each; return the steps that ended with it."""
    target = Box() if shared is None else shared
    kept = 0
    for _ in range(steps):
        one = target
        other = one
        kept += other is target
        del one, other
    return kept
