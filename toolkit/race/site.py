"""Sites, the places in the source that access something that may be shared, and the table of all of them.

Cores and records use site numbers.  The checked program imports this module at its start, so it imports almost nothing;
`terms` has what describes accesses and races.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OP_PREFIX = "gilscope:"          # ops are builtins under names that no identifier can have
MARKER = "\0gilscope-site"       # ("\0gilscope-site", index) in co_consts stands for a site until the code is linked
LOOP_CALLBACKS = "callbacks of the event loop"     # the text of sites that stand for calls of a loop
CELLS = "gilscope:cells"         # the local that identifies one activation of a function with watched closure variables


# path: as the code object has it.  line, column, end_line, end_column: of the expression, as in ast.
# function: qualified name, "<module>" at the top.  op: the op's name.
# key: attribute, global, cell or method name, already mangled ("" for items).
# text: the source of the accessed expression, e.g. "self.balance", "counts[word]".  flags: Flag.
# partners: indexes (site numbers once linked) of the reads that this write may depend on.
# note: the suppression comment's reason on the line, or None.  operator: of an augmented assignment, such as "+=".
# tests: of a read, indexes of the earlier reads of the same location whose test decides whether it happens.
# stored: the variable whose value a write stores, "" if it stores another expression.
SiteInfo = namedtuple(  # noqa: PYI024  typing costs a checked program 5 ms at its start
    "SiteInfo", "path line column end_line end_column function op key text flags partners note operator tests "
    "stored", defaults=("", (), ""))

OPS = (
    "attr_read", "attr_write", "attr_update", "attr_proxy", "attr_store",
    "item_read", "item_write", "item_delete", "item_proxy",
    "global_read", "global_write", "global_update", "cell_read", "cell_write", "cell_update",
    "method", "contains", "size", "iterate", "advance", "dynamic",
    "enter", "begin", "reads", "writes", "token", "locals_", "slice_", "locking",
)


all_sites: list[SiteInfo] = []     # number -> site; partners are numbers here
_adding = allocate_lock()


def register_sites(infos: Sequence[SiteInfo]) -> int:
    """Add a module's sites to the table and return the number of the first; partners and tests become site numbers."""
    with _adding:
        first = len(all_sites)
        all_sites.extend(info._replace(partners=tuple(first + index for index in info.partners),
                                       tests=tuple(first + index for index in info.tests)) for info in infos)
    return first
