"""Why an installer refused a package: three answers that pip gives in the same words."""

import functools
import http.server
import sys
import threading
import zipfile

import pytest

from gilscope.toolkit.builds.package_installer import (
    INDEX_UNREACHED,
    NOT_FOUND,
    WITHOUT_WHEEL,
    available_versions,
    full_output,
    gave_up,
    is_conflict,
    listed_files,
    other_versions,
    packages_without_file,
    problem_in_verbose_output,
    shortened,
    unavailable_packages,
    unmatched_requirement,
    unmet_needs,
    was_cancelled,
)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The address of a package index that has one package, for a build that nobody has."""
    root = tmp_path_factory.mktemp("index")
    page = root / "simple" / "foreign" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text('<a href="foreign-1.0-cp27-cp27m-win32.whl">foreign-1.0-cp27-cp27m-win32.whl</a>')
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=root)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()
        thread.join()


def ask_pip(index, name):
    pytest.importorskip("pip")
    return full_output([sys.executable, "-I", "-m", "pip", "--isolated", "install", "-vv", "--dry-run", "--no-deps",
                 "--retries", "0", "--only-binary", ":all:", "--index-url", index, name])


def test_pip_tells_a_name_that_nobody_knows_from_one_without_a_wheel(index):
    assert problem_in_verbose_output(ask_pip(index, "foreign")) == WITHOUT_WHEEL
    assert problem_in_verbose_output(ask_pip(index, "unheard-of")) == NOT_FOUND


def test_index_that_does_not_answer_says_nothing_of_the_name(index):
    nobody = "http://127.0.0.1:9/simple"  # the port of `discard`, where nothing listens
    assert problem_in_verbose_output(ask_pip(nobody, "foreign")).unreached


def test_pip_names_what_all_versions_need_and_has_no_wheel(tmp_path):
    pytest.importorskip("pip")
    (tmp_path / "foreign-1.0-cp27-cp27m-win32.whl").touch()
    for version in ("1.0", "2.0"):
        with zipfile.ZipFile(tmp_path / f"engine-{version}-py3-none-any.whl", "w") as wheel:
            info = f"engine-{version}.dist-info"
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: engine\nVersion: {version}\n"
                                               "Requires-Dist: foreign\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    said = full_output([sys.executable, "-I", "-m", "pip", "--isolated", "install", "--dry-run", "--only-binary",
                        ":all:", "--no-index", "--find-links", str(tmp_path), "engine"])
    assert is_conflict(said)
    if "available" not in said:
        pytest.skip("this pip does not name them")
    assert unavailable_packages(said) == ["foreign"]
    assert unavailable_packages("noise") == []


@pytest.mark.parametrize(("said", "why"), [
    ("ERROR: No matching distribution found for one", str(WITHOUT_WHEEL)),
    ("  No solution found:\n  Because one was not found in the package\n      registry and you require one",
     str(NOT_FOUND)),
    ("error: Failed to fetch\n  Caused by: dns error",
     f"{INDEX_UNREACHED}: error: Failed to fetch Caused by: dns error"),
    ("noise\nerror: the disk is full", "error: the disk is full"),
])
def test_complaint_becomes_one_line(said, why):
    assert shortened(said) == why


LAST = "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'TimeoutError'"


@pytest.mark.parametrize(("said", "why"), [
    (f"{LAST.replace('=0', '=1')}\n{LAST}\nERROR: No matching distribution found for one", "'TimeoutError'"),
    ("error: Request failed after 3 retries\n  Caused by: timeout", "error: Request failed after 3 retries"),
    (f"{LAST.replace('=0', '=1')}\nERROR: No matching distribution found for one", ""),   # then it answered
])
def test_index_that_does_not_answer_at_last_is_told_from_one_that_was_slow(said, why):
    assert gave_up(said) == why


def test_versions_that_there_are_are_told():
    said = "ERROR: Could not find a version that satisfies the requirement one==9 (from versions: {})"
    assert other_versions(said.format("none")) is None
    others = str(other_versions(said.format("1.0, 1.1")))
    assert others.endswith("wheel for this build; other versions with one: 1.0, 1.1")


def test_what_a_package_needs_is_told_from_the_package():
    assert unmatched_requirement("ERROR: No matching distribution found for needed>=2 (from one)") == "needed>=2"
    assert unmatched_requirement("ERROR: the disk is full") is None


@pytest.mark.parametrize(("said", "names"), [
    ("ERROR: No matching distribution found for Needed_one>=2 (from one)", ["Needed_one"]),
    ("  Because only one.two==1.0 is available and one.two==1.0 has no wheels", ["one.two"]),
    ("  Because one was not found in the package registry\nBecause two.", ["one", "two"]),
    ("ERROR: the disk is full", []),
])
def test_packages_without_a_file_are_named_as_the_installer_writes_them(said, names):
    assert packages_without_file(said) == names


def test_needs_that_are_not_installed_are_told_from_those_of_another_version():
    assert unmet_needs("one 1.0 requires two-three, which is not installed.\n"
                       "one 1.0 has requirement four>=2, but you have four 1.0.") == ["two-three"]


def test_end_by_the_user_is_told_from_a_failure():
    assert was_cancelled("Collecting one\nERROR: Operation cancelled by user\n")
    assert not was_cancelled("ERROR: No matching distribution found for one")


def test_versions_and_files_of_an_index_are_listed():
    assert available_versions("one (1.1)\nAvailable versions: 1.1, 1.0\n  INSTALLED: 1.0\n") == ["1.1", "1.0"]
    assert available_versions("ERROR: No matching distribution found for one") == []
    assert listed_files("  Found link https://index.example/b/one-1.0.tar.gz#sha256=0 (from ...)\n"
                        "  Skipping link: https://index.example/a/one-1.0-py3-none-any.whl (none)\n"
                        "  https://index.example/b/one-1.0.tar.gz\n") == ["one-1.0-py3-none-any.whl", "one-1.0.tar.gz"]
