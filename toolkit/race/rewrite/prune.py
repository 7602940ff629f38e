"""What needs no op, as nobody else can have it or nothing changes: decided before anything is rewritten."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.race.scopes import Table, Variable


class Pruned:
    """Answers for one module."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.private: set[Variable] = set()        # containers that never leave their function
        self.attributes: set[ast.Attribute] = set()    # of objects under construction
        self.restored: set[str] = set(table.stored_attributes)   # attributes stored outside of initializers

    def is_private(self, variable: Variable) -> bool:
        """Return whether the variable is a local container that never escapes."""
        return variable in self.private

    def is_container(self, node: ast.expr) -> bool:
        """Return whether the module uses what the expression names like a container."""
        return True

    def is_own_self(self, function: ast.Attribute) -> bool:
        """Return whether the receiver is the `self` of a class that is no container."""
        return False
