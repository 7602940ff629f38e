"""The syntax tree in, the same program with its accesses reported out.

Everything else of the program stays: values, order of evaluation, exceptions with their lines, names, docstrings,
warnings.  What ops there are and what they are called with stands in `site.py`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race.rewrite.data_flow.statements import analyse
from gilscope.toolkit.race.rewrite.function_summaries import Summary
from gilscope.toolkit.race.rewrite.prune import Pruned
from gilscope.toolkit.race.rewrite.scopes.shared import Table
from gilscope.toolkit.race.rewrite.sites import Sites, Text, read_notes
from gilscope.toolkit.race.rewrite.transform.functions import Rewriter

if TYPE_CHECKING:
    from types import CodeType

    from gilscope.toolkit.race.site import SiteInfo

__all__ = ["compile_rewritten", "rewrite"]


def rewrite(source: bytes | str | ast.Module, path: str, *, cells: bool = True) -> tuple[ast.Module, list[SiteInfo]]:
    """Return the rewritten tree and its sites, which markers in the tree count from 0.

    A tree that is given is changed.  Without `cells` closure variables are not watched, so that functions keep their
    free variables.

    Raises:
        SyntaxError: The source is no Python of this version.
        RecursionError: The source is nested too deeply.
    """
    if isinstance(source, ast.Module):
        tree, text = source, None
    else:
        tree, text = ast.parse(source, path), source.encode() if isinstance(source, str) else source
    table, summary = Table(tree), Summary(tree)
    plan = analyse(table, summary)
    sites = Sites(path, Text(text), plan, read_notes(text) if text else {})
    rewriter = Rewriter(table, sites, Pruned(tree, table, summary), cells=cells)
    return rewriter.module(tree), sites.finish()


def compile_rewritten(source: bytes | str | ast.Module, path: str, *, cells: bool = True,
                      optimize: int = -1) -> tuple[CodeType, list[SiteInfo]]:
    """Return the code object of the rewritten module, with markers for its sites, and the sites.

    Raises:
        SyntaxError: The source is no Python of this version.
        RecursionError: The source is nested too deeply.
    """
    tree, infos = rewrite(source, path, cells=cells)
    code: Any = compile(tree, path, "exec", dont_inherit=True, optimize=optimize)
    return code, infos
