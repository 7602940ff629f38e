"""What is expensive to make, made once for all processes of a test run."""

import os
import shutil

from gilscope.toolkit.file_locks import locked


def once(tmp_path_factory, name, make):
    """Return the folder `name`, which `make(folder)` fills in the first test process to need it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)   # of a process that could not make it
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder
