"""Keys that other threads forget while the C core uses them."""

import pytest

from tests.conformance.builds import run_child


@pytest.mark.slow
@pytest.mark.builds("gil", "free")
def test_no_key_is_used_after_its_end(python, tmp_path):
    child = run_child(python, "-m", "gilscope", "race", "-m", "tests.race.core.transient_keys", "6",
                      GILSCOPE_CACHE=str(tmp_path), GILSCOPE_RACE_CFLAGS="-DGILSCOPE_WIDE_WINDOWS -Werror",
                      PYTHONMALLOC="debug")
    if "unavailable" in child.stderr:
        pytest.skip(child.stderr.splitlines()[-1])
    assert "Fatal Python error" not in child.stderr, child.stderr
    assert "end" in child.stdout.splitlines(), child.stderr
