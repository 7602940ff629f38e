"""What dask says of its troubles is not for the terminal of who measures."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.newest,
              pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")]

PROGRAM = """
import logging
import distributed
logging.getLogger("distributed.client").addHandler(logging.FileHandler("named-by-the-user"))
from gilscope.toolkit.fleet.dask_cluster import log_nothing_here
log_nothing_here()
for name in ("distributed.client", "distributed.comm.core", "distributed", "tornado.application", "asyncio"):
    logging.getLogger(name).critical("lost by %s", name)
logging.getLogger("of.somebody.else").critical("printed")
"""


def test_dask_is_silent_but_in_a_file_that_its_settings_name(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "printed\n")
    assert (tmp_path / "named-by-the-user").read_text() == "lost by distributed.client\n"
