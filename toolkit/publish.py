"""A copy of a run for others to read: every value, and nothing of whose machine it was.

Paths, the host's name and what holds them (configure arguments with a folder, the output of failed cells) stay out;
processor, kernel, compiler and flags stay in, since a number means nothing without them.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import RESULTS
from gilscope.toolkit.errors import ToolkitError, cannot_write
from gilscope.toolkit.escaping import visible_all
from gilscope.toolkit.redaction import without_folders, without_places
from gilscope.toolkit.store import header, load_run, read_json

if TYPE_CHECKING:
    from gilscope.toolkit.model import Build, Run

_PRIVATE = frozenset({"hostname", "python_executable", "boot_time", "command"})  # names of pyperf's metadata


def publish(source: Path, target: Path) -> Run:
    """Write a copy of the run in the folder `source` to the new folder `target` and return what it holds.

    Raises:
        BadFileError: a file of the run is damaged.
        ToolkitError: `target` exists, or cannot be written.
    """
    run = without_traces(load_run(source))
    try:
        target.mkdir(parents=True)
        write_files(run, source, target)
    except FileExistsError:
        raise ToolkitError(f"{target} exists already: name a new folder") from None
    except OSError as error:
        raise cannot_write(str(target), error) from error
    return run


def write_files(run: Run, source: Path, target: Path) -> dict[str, Path]:
    """Write the files of a run that is `without_traces` into `target`, and return those of its builds that have values.

    Args:
        run: The one in the folder `source`.
        source: Where its values are.
        target: A folder that is there.

    Raises:
        OSError: `target` cannot be written.
    """
    files = {}
    for build in run.builds:
        name = f"{build.label}.json"
        if (source / name).exists():
            suite = _scrubbed(read_json(source / name, RESULTS))
            (target / name).write_text(json.dumps(suite, separators=(",", ":"), sort_keys=True) + "\n")
            files[build.label] = target / name
    (target / "run.json").write_text(json.dumps(header(run), indent=1) + "\n")
    return files


def published_label(label: str) -> str:
    """Return a label without the folders of a path from the root, which the label of a copied run may be."""
    return Path(label).name if Path(label).is_absolute() else label


def without_traces(run: Run) -> Run:
    """Return the run without paths, host name and the user's folders."""
    return dataclasses.replace(
        run,
        label=published_label(run.label),
        builds=tuple(_without_paths(build) for build in run.builds),
        machine=dataclasses.replace(run.machine, hostname=""),
        failures=tuple(dataclasses.replace(failure, output="", reason=without_places(failure.reason))
                       for failure in run.failures),
        skips=visible_all(run.skips, without_places), notes=visible_all(run.notes, without_places),
        options=visible_all(run.options | ({"paths": []} if "paths" in run.options else {}), without_folders),
    )


def _without_paths(build: Build) -> Build:
    return dataclasses.replace(
        build,
        executable=Path(build.executable).name,
        base_executable=Path(build.base_executable).name,
        config_args=_without_folders(build.config_args),
    )


def _without_folders(config_args: str) -> str:
    try:
        words = shlex.split(config_args)
    except ValueError:   # what ./configure was given never has a quote that is left open
        return ""
    # Not the prefix alone: pyenv names its folder in LDFLAGS, LIBS and CPPFLAGS too.
    return " ".join(f"'{word}'" for word in words if "/" not in word)


def _scrubbed(value: Any) -> Any:
    """Return a pyperf suite's JSON without private metadata, wherever they stand."""
    if isinstance(value, dict):
        kept = {
            name: _without_folders(each) if name == "python_config_args" else _scrubbed(each)
            for name, each in value.items()
            if name not in _PRIVATE
        }
        # pyperf refuses metadata without a value.
        return {name: each for name, each in kept.items() if (name, each) != ("python_config_args", "")}
    return [_scrubbed(each) for each in value] if isinstance(value, list) else value
