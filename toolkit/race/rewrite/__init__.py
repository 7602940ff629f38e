"""Rewrite a syntax tree, so that the program reports its accesses to the core by calls of ops.

Everything else stays the same: values, order of evaluation, exceptions with their lines, names, docstrings, warnings.
`site.OPS` has the names of the ops.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race.analysis.scopes import ScopeTable
from gilscope.toolkit.race.analysis.suppression_comments import suppression_reasons
from gilscope.toolkit.race.rewrite.flow_statements import analyse
from gilscope.toolkit.race.rewrite.function_summaries import ModuleSummary
from gilscope.toolkit.race.rewrite.prune import UnsharedNodes
from gilscope.toolkit.race.rewrite.site_collector import SiteCollector, SourceText
from gilscope.toolkit.race.rewrite.transform_statements import Rewriter

if TYPE_CHECKING:
    from types import CodeType

    from gilscope.toolkit.race.site import SiteInfo

__all__ = ["compile_rewritten", "rewrite"]


def rewrite(source: bytes | str | ast.Module, path: str, *, cells: bool = True) -> tuple[ast.Module, list[SiteInfo]]:
    """Return the rewritten tree and its sites, which markers in the tree number from 0.

    If the source is a tree, it is changed in place.  Without `cells`, closure variables are not watched, so that
    functions keep their free variables.

    Raises:
        SyntaxError: The source is no Python of this version.
        RecursionError: The source is nested too deeply.
    """
    if isinstance(source, ast.Module):
        tree, text = source, None
    else:
        tree, text = ast.parse(source, path), source.encode() if isinstance(source, str) else source
    table, summary = ScopeTable(tree), ModuleSummary(tree)
    plan = analyse(table, summary)
    sites = SiteCollector(path, SourceText(text), plan, suppression_reasons(text) if text else {})
    rewriter = Rewriter(table, sites, UnsharedNodes(tree, table, summary), cells=cells)
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
