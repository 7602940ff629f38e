"""Store the builds that the user added with `gilscope builds add`, in gilscope's data folder."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from gilscope.toolkit.bounded_reading import parse_json, read_text
from gilscope.toolkit.errors import BadFileError, BuildError
from gilscope.toolkit.file_locks import locked
from gilscope.toolkit.user_dirs import data_dir


def added_builds() -> dict[str, Path]:
    """Return the path of every build that was added, by its label, in the order of adding.

    Raises:
        BadFileError: the stored file is damaged.
    """
    try:
        fields = parse_json(read_text(_stored_file()))
        return {str(label): Path(path) for label, path in fields.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise BadFileError(f"{_stored_file()} cannot be read ({error}); remove it, and add its builds again") from error


def remember(label: str, path: Path) -> None:
    """Add a build, in place of any with the same label."""
    with locked(_lock()):
        _write({**added_builds(), label: path})


def forget(label: str) -> bool:
    """Remove a build; return True if one had this label."""
    with locked(_lock()):
        known = added_builds()
        if label not in known:
            return False
        _write({name: path for name, path in known.items() if name != label})
        return True


def _write(builds: dict[str, Path]) -> None:
    try:
        with tempfile.NamedTemporaryFile("w", dir=_stored_file().parent, delete=False, encoding="utf-8") as handle:
            json.dump({label: str(path) for label, path in builds.items()}, handle, indent=1)
        Path(handle.name).replace(_stored_file())
    except OSError as error:
        raise BuildError(f"cannot write {_stored_file()}: {error.strerror}; set GILSCOPE_DATA to a folder that can be "
                         "written") from error


def _lock() -> Path:
    return data_dir() / "added.lock"


def _stored_file() -> Path:
    return data_dir() / "added.json"
