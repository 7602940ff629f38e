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
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.request import EvaluationRequest

MOST_HOPS = 5   # from module to module, to where a name is defined
WORDS = 2       # of a function's name with its payloads
DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"


def is_function(text: str) -> bool:
    """Return True if the name is "module:function", alone or before "module:payloads", rather than a script."""
    words = text.split()
    return all(":" in word and not word.endswith(".py") for word in words) and 1 <= len(words) <= WORDS


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


def modules_of(text: str | None, root: Path) -> tuple[str, ...]:
    """Return the modules that a workload is imported from, with those of its payloads; those that a script imports."""
    if text is None or is_function(text):
        return tuple(word.partition(":")[0] for word in (text or "").split())
    script = script_of(text, root)
    try:
        nodes = [*ast.walk(ast.parse(_source(script[0])))] if script else []
    except (SyntaxError, ValueError):   # not Python: a program of another language
        return ()
    return (*(alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names),
            *(node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level))


def refuse_lone_options(request: EvaluationRequest) -> None:
    """Refuse options that say how a function is called if no function is to be called.

    Raises:
        ToolkitError: --payloads or --calls is there, and --workload is not, or names a script.
    """
    for option, value in (("--payloads", request.payloads), ("--calls", request.calls)):
        if value and not is_function(request.workload or ""):
            raise ToolkitError(f"{option} {value} is for a function: name it as --workload module:function")


def refuse_misnamed(text: str, project: Project, payloads: str | None = None) -> None:
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
    module, function = _known("--workload", text, project, folders)
    if payloads is not None:
        _known("--payloads", payloads, project, folders)
    elif asked := _needed(module, function, folders):
        needs = ", ".join(asked)
        raise ToolkitError(f"--workload {text}: it is called without arguments, and {function} needs {needs};"
                           f" name a function that makes the calls, as `def load(): {function}(...)`, or payloads "
                           "(--payloads MODULE:NAME)")


def _known(option: str, text: str, project: Project, folders: Sequence[Path]) -> tuple[str, str]:
    """Return module and name of "module:name".

    Raises:
        ToolkitError: It is no such name, or the project does not have it.
    """
    named = re.fullmatch(rf"({DOTTED}):({DOTTED})", text)
    if not named:
        what = "write module:function, like svc.load:request, or name a script" if option == "--workload" else (
            "write module:name, like svc.load:requests")
        raise ToolkitError(f"{option} {text}: {what}")
    module, name = named.groups()
    files = [path for folder in folders for path in _files(folder, module)]
    if not files and any(f"{module}.".startswith(f"{each}.") for each in project.modules):
        raise ToolkitError(f"{option} {text}: {project.name} has no module {module}")
    if files and not any(_may_hold(path, name.partition(".")[0]) for path in files):
        near = difflib.get_close_matches(name, _functions(files), 1)
        hint = f"; did you mean {module}:{near[0]}?" if near else ""
        raise ToolkitError(f"{option} {text}: {files[0]} has no {name}{hint}")
    return module, name


def _files(folder: Path, module: str) -> list[Path]:
    place = folder.joinpath(*module.split("."))
    return [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]


def _may_hold(path: Path, name: str) -> bool:
    """Return True if the module may define the name: by a star import or `__getattr__`, it may define any."""
    return re.search(rf"\b{re.escape(name)}\b|import \*|\b__getattr__\b|\bglobals\(", _source(path)) is not None


def _needed(module: str, function: str, folders: Sequence[Path], hops: int = MOST_HOPS) -> tuple[str, ...]:
    """Return the required arguments of "package.module:name"; () if they cannot be determined.

    A name that the module imports from another one of the project is looked up there.
    """
    for path in (path for folder in folders for path in _files(folder, module)):
        try:
            tree = ast.parse(_source(path))
        except (SyntaxError, ValueError):
            continue
        if asked := _asked_for(tree, function):
            return asked
        if hops and (origin := _imported_from(tree, module, function, package=path.name == "__init__.py")):
            return _needed(*origin, folders, hops - 1)
    return ()


def _imported_from(tree: ast.Module, module: str, function: str, *, package: bool) -> tuple[str, str] | None:
    """Return module and name from which the top level imports the function; None if it does not, or defines it too."""
    name, _, rest = function.partition(".")
    if any(getattr(node, "name", None) == name for node in tree.body):
        return None
    found = [(node, alias) for node in tree.body if isinstance(node, ast.ImportFrom)
             for alias in node.names if (alias.asname or alias.name) == name]
    if len(found) != 1:
        return None
    node, alias = found[0]
    parts = module.split(".")
    base = parts[:len(parts) - node.level + package] if node.level else []
    origin = ".".join([*base, *filter(None, [node.module])])
    return (origin, ".".join(filter(None, [alias.name, rest]))) if origin else None


def _asked_for(tree: ast.Module, function: str) -> tuple[str, ...]:
    """Return the required arguments of a function, or of "Class.method"; () if they cannot be determined."""
    body: list[ast.stmt] = tree.body
    *classes, name = function.split(".")
    for each in classes:
        inside = [node for node in body if isinstance(node, ast.ClassDef) and node.name == each]
        if len(inside) != 1:
            return ()
        body = inside[0].body
    found = [node for node in ast.walk(tree) if getattr(node, "name", None) == name]
    node = found[0] if len(found) == 1 else None
    if node not in body or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ()
    kinds = {each.id for each in node.decorator_list if isinstance(each, ast.Name)} & {"classmethod", "staticmethod"}
    if len(kinds) != len(node.decorator_list):
        return ()   # another decorator may supply them
    positional = [*node.args.posonlyargs, *node.args.args]
    needed = positional[:len(positional) - len(node.args.defaults)][1 if "classmethod" in kinds else 0:]
    needed += [each for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
               if default is None]
    return tuple(each.arg for each in needed)


def _functions(files: list[Path]) -> list[str]:
    return [name for path in files for name in re.findall(r"^(?:async )?def (\w+)", _source(path), re.MULTILINE)]


def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
