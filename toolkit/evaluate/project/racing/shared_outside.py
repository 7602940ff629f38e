"""What threads share that is no variable of the project's: what the library keeps for them, and what a lock guards.

Whatever orders the threads, each process and each interpreter would have its own of it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.racing.threaded_functions import LOCKS, changed, sources, within
from gilscope.toolkit.evaluate.sections import SharedFact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from gilscope.toolkit.evaluate.project.racing.threaded_functions import Ran, Source
    from gilscope.toolkit.evaluate.project.where_to_run import Shown

USED_UP = frozenset({"threading.Semaphore", "random.Random"})   # by whoever uses them


def kept_by_others(ran: Iterable[Ran], shown: Shown) -> Iterator[SharedFact]:
    """Yield what those functions change, or use up, that the library or a package keeps for all threads, each once.

    Whatever orders the threads, each process would have its own: of permits, of numbers drawn, of what is kept.
    """
    known = set()
    for source in sources(ran, shown):
        if not source.ran.twice:
            continue
        kinds = {name: kind for name, kind in source.foreign.items() if kind in USED_UP or kind not in LOCKS}
        used = [*((line, name) for line, name in changed(source.node) if name in kinds),
                *((each.lineno, name) for each in source.walk() if isinstance(each, ast.Name | ast.Attribute)
                  and kinds.get(name := ast.unparse(each)) in USED_UP)]
        for line, name in sorted(used):
            if name not in known:
                known.add(name)
                yield _shared(source, f"{name} ({kinds[name]})", line)


def locks_of_what_is_outside(
    ran: Iterable[Ran], shown: Shown, explained: Collection[tuple[str, int]],
) -> Iterator[SharedFact]:
    """Yield locks that threads share and that guard nothing of what is known to be shared: what is outside, then.

    A file, a table, a device: a copy of the lock would guard it from nobody.

    Args:
        ran: The functions.
        shown: Says which files are the project's.
        explained: File and line of every use of a variable that threads share, memos included.
    """
    held: dict[tuple[str, str], list[tuple[Source, int, bool]]] = defaultdict(list)
    for source in sources(ran, shown):
        for each, entered in source.guards() if source.ran.twice else ():
            name = ast.unparse(entered)
            if source.foreign.get(name) in LOCKS - USED_UP and not source.judged(each.lineno):
                inside = any(file == source.name and within(each, line) for file, line in explained)
                held[source.name, name].append((source, each.lineno, inside))
    for (_, name), places in sorted(held.items()):
        if not any(inside for *_, inside in places):
            source, line, _ = places[0]
            yield _shared(source, f"{name} (a lock, of which a copy guards nothing outside)", line)


def _shared(source: Source, variable: str, line: int) -> SharedFact:
    return SharedFact(variable=variable, file=source.name, line=line, other_file=source.name, other_line=line)
