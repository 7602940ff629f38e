"""Small questions of the flow analysis: does a block end here, is a value empty, what leads to a handler."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gilscope.toolkit.race.rewrite.known_names import SNAPSHOTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.race.rewrite.data_flow.locations import Reads

_FRESH_CALLS = SNAPSHOTS | {"deque", "Counter", "defaultdict", "OrderedDict", "bytearray"}
_LOOKUP_ERRORS = frozenset({"KeyError", "IndexError", "LookupError", "Exception", "BaseException"})
_NAME_ERRORS = frozenset({"AttributeError", "NameError", "Exception", "BaseException"})


def exits(body: Sequence[ast.stmt]) -> bool:
    """Return whether what follows the statements is never reached from their end."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(last, ast.If):
        return exits(last.body) and exits(last.orelse)
    if isinstance(last, ast.With | ast.AsyncWith):
        return exits(last.body)
    if isinstance(last, ast.Try | ast.TryStar):
        ends = exits(last.body) or exits(last.orelse)
        return exits(last.finalbody) or (ends and all(exits(handler.body) for handler in last.handlers))
    return (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
            and isinstance(last.value.func, ast.Attribute) and last.value.func.attr in ("exit", "_exit", "abort"))


def is_reset(value: ast.expr) -> bool:
    """Return whether the value is empty or zero; None and False say something, as states do."""
    if isinstance(value, ast.Constant):
        return value.value is not None and not isinstance(value.value, bool) and not value.value
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    if not isinstance(value, ast.Call):
        return False
    name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    return name in _FRESH_CALLS and all(isinstance(one, ast.Name) for one in value.args) and len(value.args) <= (
        name == "defaultdict")


def failing(handler: ast.ExceptHandler, reads: Reads) -> Reads:
    """Return the reads whose failure leads to the handler."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {kind.id for kind in kinds if isinstance(kind, ast.Name)}
    wanted: set[str] = set()
    if handler.type is None or names & _LOOKUP_ERRORS:
        wanted |= {"item", "size"}
    if handler.type is None or names & _NAME_ERRORS:
        wanted |= {"attr", "name"}
    return frozenset(read for read in reads if read.place.kind in wanted)
