"""Before the check: where things go, what the cache keeps, and what is installed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from inputs import InputError, read_inputs
from runner_files import set_output

from gilscope import __version__
from gilscope.toolkit.user_dirs import cache_dir, data_dir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inputs import ActionInputs

CHECKOUT = Path(__file__).resolve().parents[2]
OLDEST = (3, 12)
PIP_INSTALL = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check")
CACHE_GIB = "2"   # of environments; a repository has 10 GB of caches for all workflows
GILSCOPE = (sys.executable, "-P", "-m", "gilscope")   # -P: the project's folder may have anything in it


def prepare() -> int:
    """Check the inputs; set the outputs `folder`, `cache-folders`, `cache-key` and `cache-prefix`."""
    inputs = read_inputs()
    if sys.version_info < OLDEST:
        raise InputError(f"gilscope needs Python {OLDEST[0]}.{OLDEST[1]} or newer and this is {sys.version.split()[0]}"
                         ": set python-version, or run actions/setup-python before this step")
    set_output("folder", tempfile.mkdtemp(prefix="gilscope-", dir=os.environ.get("RUNNER_TEMP")))
    folders = (cache_dir(), data_dir())
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    set_output("cache-folders", "\n".join(map(str, folders)))
    prefix = cache_prefix(inputs)
    set_output("cache-prefix", prefix)
    set_output("cache-key", prefix + _digest(inputs))
    return 0


def cache_prefix(inputs: ActionInputs) -> str:
    """Return the common start of the cache keys for this system, Python, mode and version of gilscope."""
    words = ("gilscope", os.environ.get("RUNNER_OS", sys.platform), os.environ.get("RUNNER_ARCH", os.uname().machine),
             str(sysconfig.get_config_var("SOABI")), inputs.mode, "+".join(inputs.builds),
             inputs.version or __version__)
    return re.sub(r"[^\w.+-]", "_", "-".join(words)) + "-"   # a key may have no comma


def _digest(inputs: ActionInputs) -> str:
    """Return a digest of what the environments are made from: the arguments, and the files that they name."""
    digest = hashlib.sha256(repr((inputs.arguments, inputs.install, sys.version)).encode())
    for word in inputs.arguments:
        path = inputs.folder / word.rpartition("=")[2]
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def install() -> int:
    """Install what the project needs, gilscope, and the builds that are not there; return the status of what failed."""
    inputs = read_inputs()
    gilscope = f"gilscope=={inputs.version}" if inputs.version else str(CHECKOUT)
    ours = [gilscope, *(["uv"] if inputs.builds else [])]   # uv downloads builds, which take minutes to compile
    # In `compare`, each side has its own environment.
    theirs = [inputs.install] if inputs.install and inputs.mode != "compare" else []
    for words in (*theirs, ours):
        if status := run([*PIP_INSTALL, *words], inputs.folder):
            return status
    if inputs.builds and (absent := missing_builds(with_twins(inputs.builds))):
        return run([*GILSCOPE, "builds", "install", *absent], inputs.folder, **build_variables())
    return 0


def build_variables() -> dict[str, str]:
    """Return the variables with which uv puts builds, and gilscope finds them, where the cache keeps them."""
    return {"UV_PYTHON_INSTALL_DIR": str(data_dir() / "uv")}


def with_twins(labels: Sequence[str]) -> list[str]:
    """Return labels of builds without a GIL, and those of their twins with one, which they are compared with."""
    return list(dict.fromkeys(each for label in labels for each in (label, label.removesuffix("t"))))


def missing_builds(wanted: Sequence[str]) -> list[str]:
    """Return the labels of builds that gilscope does not find on this machine."""
    done = subprocess.run([*GILSCOPE, "builds", "--json"], check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **build_variables()})
    there = {each["label"] for each in json.loads(done.stdout)["builds"]}
    return [label for label in wanted if label not in there]


def run(command: Sequence[str], folder: Path, **variables: str) -> int:
    """Run a command whose output the log shows; return its exit status, 128 + N if signal N ended it."""
    print(f"> {' '.join(command)}".replace("\n", " "), flush=True)
    environment = {"GILSCOPE_CACHE_GIB": CACHE_GIB, **os.environ, **variables}
    status = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    return status if status >= 0 else 128 - status
