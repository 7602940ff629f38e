"""Extension modules of CFFI: what the script that `cffi_modules` names gives to `set_source`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Binding, Module

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files


def ffi_module(files: Files, named: str, file: str, line: int, backend: str, condition: str = "") -> Module:
    """Return the module that a text like "src/pkg/_build.py:ffibuilder" stands for.

    Args:
        files: Of the project.
        named: Script and object.
        file: Where that is written.
        line: Likewise.
        backend: What builds it.
        condition: Under which it is made.
    """
    script = files.there(named.partition(":")[0], file)
    return Module(name=_set_source(files.text(script) or "") if script else "", binding=Binding.CFFI, backend=backend,
                  file=file, line=line, sources=(script,) if script else (), condition=condition)


def _set_source(text: str) -> str:
    """Return the module's name in the script's call of `set_source`; "" where it is computed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    names = [call.args[0].value for call in ast.walk(tree)
             if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "set_source"
             and call.args and isinstance(call.args[0], ast.Constant)]
    return str(names[0]) if names else ""
