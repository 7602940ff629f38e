"""Check that the --workload exists before spending minutes on anything else.  Nothing of it is imported."""

from __future__ import annotations

import ast
import difflib
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.project.discovery import Project

DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"


def is_function(text: str) -> bool:
    """Return True if the name is "module:function" rather than a script."""
    return ":" in text and not text.endswith(".py") and len(text.split()) == 1


def script_of(text: str, root: Path) -> tuple[Path, tuple[str, ...]] | None:
    """Return the script and its arguments; None if there is no such file, here or in `root`."""
    try:
        words = shlex.split(text)
    except ValueError:   # an unbalanced quotation mark, which may be part of a file name
        words = [text]
    for name, *arguments in ([text], words):
        for folder in (Path.cwd(), root):
            if (folder / name).is_file():
                return folder / name, tuple(arguments)
    return None


def refuse_misnamed(text: str, project: Project) -> None:
    """Refuse a workload that certainly does not exist; foreign modules are only found when they are imported.

    Raises:
        ToolkitError: There is no such script, no such module in the project's packages, or no such name in it.
    """
    folders = (*project.sources, project.root)
    if not is_function(text):
        if script_of(text, project.root) is None:
            hint = f"; a function is named module:function, like {':'.join(text.rsplit('.', 1))}" if re.fullmatch(
                rf"{DOTTED}\.\w+", text) and not text.endswith(".py") else ""
            raise ToolkitError(f"--workload {text}: there is no such script{hint}")
        return
    named = re.fullmatch(rf"({DOTTED}):({DOTTED})", text)
    if not named:
        raise ToolkitError(f"--workload {text}: write module:function, like svc.load:request, or name a script")
    module, function = named.groups()
    files = [path for folder in folders for path in _files(folder, module)]
    if not files and module.partition(".")[0] in project.modules:
        raise ToolkitError(f"--workload {text}: {project.name} has no module {module}")
    if files and not any(_may_hold(path, function.partition(".")[0]) for path in files):
        near = difflib.get_close_matches(function, _functions(files), 1)
        hint = f"; did you mean {module}:{near[0]}?" if near else ""
        raise ToolkitError(f"--workload {text}: {files[0]} has no {function}{hint}")
    if asked := next(filter(None, (_asked_for(path, function) for path in files)), ()):
        needs = ", ".join(asked)
        raise ToolkitError(f"--workload {text}: it is called without arguments, and {function} needs {needs};"
                           f" name a function that makes the calls, as `def load(): {function}(...)`")


def _files(folder: Path, module: str) -> list[Path]:
    place = folder.joinpath(*module.split("."))
    return [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]


def _may_hold(path: Path, name: str) -> bool:
    """Return True if the module may define the name: by a star import or `__getattr__`, it may define any."""
    return re.search(rf"\b{re.escape(name)}\b|import \*|\b__getattr__\b|\bglobals\(", _source(path)) is not None


def _asked_for(path: Path, function: str) -> tuple[str, ...]:
    """Return the required arguments of a top-level function; () if they cannot be determined."""
    try:
        tree = ast.parse(_source(path))
    except (SyntaxError, ValueError):
        return ()
    found = [node for node in ast.walk(tree) if getattr(node, "name", None) == function]
    node = found[0] if len(found) == 1 else None
    if node not in tree.body or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.decorator_list:
        return ()   # a decorator may supply them
    positional = [*node.args.posonlyargs, *node.args.args]
    needed = positional[:len(positional) - len(node.args.defaults)]
    needed += [each for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
               if default is None]
    return tuple(each.arg for each in needed)


def _functions(files: list[Path]) -> list[str]:
    return [name for path in files for name in re.findall(r"^(?:async )?def (\w+)", _source(path), re.MULTILINE)]


def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
