"""What continuous integration says at its end: `.ci/summary.py`."""

import subprocess
import sys

import pytest

from tests.conformance.builds import ROOT

pytestmark = pytest.mark.newest
SUITE = """<testsuites><testsuite><testcase classname="tests.test_it" name="test_a" time="2.5"/>
<testcase classname="tests.test_it" name="test_b" time="0.1"><skipped type="pytest.skip" message="{}"/></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize(("suite", "code", "words"), [
    (SUITE.format("no zsh"), 0, "       1  no zsh"),
    (SUITE.format("no free-threaded build at hand"), 1, "       1  NOT ALLOWED no free-threaded build at hand"),
    ("<testsuites/>", 1, "no test ran"),
])
def test_skip_that_is_not_listed_fails(suite, code, words, tmp_path):
    (tmp_path / "fast.xml").write_text(suite)
    (tmp_path / "steps").write_text("     330  fast tests\n")
    done = subprocess.run([sys.executable, ROOT / ".ci" / "summary.py", tmp_path], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert words in done.stdout.splitlines()
    assert "     330  fast tests" in done.stdout.splitlines()
