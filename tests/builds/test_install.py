"""Building from source: whole or not at all; where sources come from; what is there already."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.builds import compile_python, fetch_source
from gilscope.toolkit.builds import install as installing
from gilscope.toolkit.builds.compile_python import PythonRequest, SourceTarball, build, installed, pythons_dir
from gilscope.toolkit.builds.find import FoundBuilds
from gilscope.toolkit.builds.install import PythonInstallRequest, install
from gilscope.toolkit.builds.logged_command import CommandFailedError, run_logged
from gilscope.toolkit.errors import BuildError, UnknownNameError
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

PAIR = [PythonRequest("3.99", free_threaded=False), PythonRequest("3.99", free_threaded=True)]

# What ./configure and make of a very small CPython do.
CONFIGURE = r"""#!/bin/sh
label=3.99
for word in "$@"; do case $word in
  --prefix=*) prefix=${word#--prefix=};;
  --disable-gil) label=3.99t;;
esac; done
cat > Makefile <<END
all:
	printf '#!/bin/sh\nexit 0\n' > python
	chmod +x python
altinstall:
	mkdir -p \$(DESTDIR)$prefix/bin
	cp python \$(DESTDIR)$prefix/bin/python$label
END
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name, folder in (("GILSCOPE_CACHE", "cache"), ("GILSCOPE_DATA", "data"), ("PYENV_ROOT", "pyenv"),
                         ("UV_PYTHON_INSTALL_DIR", "uv")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setattr(installing, "uv_command", lambda: None)
    return tmp_path


def tarball(folder, configure=CONFIGURE, version="3.99.1"):
    tree = folder / f"Python-{version}"
    (tree / "Include").mkdir(parents=True)
    (tree / "Include" / "patchlevel.h").write_text(f'#define PY_VERSION      "{version}"\n')
    (tree / "configure").write_text(configure)
    (tree / "configure").chmod(0o755)
    path = folder / f"Python-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tree, arcname=tree.name)
    return path


def left_behind():
    """Return what is in the folder of the interpreters beside whole ones and the lock."""
    whole = {Path(entry.executable).parent.parent for entry in installed()}
    return [path.name for path in pythons_dir().iterdir() if path not in whole and path.name != ".lock"]


def next_bytes(reader):
    """Wait for the other end of a pipe: its bytes, b"" once everybody there has ended."""
    assert select.select([reader], [], [], PATIENCE)[0], "nothing came"
    return os.read(reader, 100)


def test_a_pair_is_built_from_one_source_and_described(home):
    source = SourceTarball.of(tarball(home))
    steps = []
    entries = build(source, PAIR, jobs=1, report=lambda step: steps.append(step.what))
    assert [(entry.label, entry.version) for entry in entries] == [("3.99", "3.99.1"), ("3.99t", "3.99.1")]
    assert all(os.access(entry.executable, os.X_OK) for entry in entries)
    assert {entry.sha256 for entry in entries} == {hashlib.sha256(source.tarball.read_bytes()).hexdigest()}
    assert set(entries[1].flags) - set(entries[0].flags) == {"--disable-gil"}
    assert sorted(entry.label for entry in installed()) == ["3.99", "3.99t"]
    assert left_behind() == []
    assert "3.99t: configure" in steps
    assert not list((home / "data" / "logs").iterdir())


def test_what_is_built_is_not_built_again(home):
    source = SourceTarball.of(tarball(home))
    first = build(source, PAIR, jobs=1, report=lambda _: None)
    steps = []
    assert build(source, PAIR, jobs=1, report=lambda step: steps.append(step.what)) == first
    assert not [step for step in steps if "configure" in step]


def test_a_failing_configure_leaves_its_log_and_nothing_else(home):
    source = SourceTarball.of(tarball(home, "#!/bin/sh\necho no such compiler >&2\nexit 77\n"))
    with pytest.raises(BuildError, match=r"status 77(?s:.*)no such compiler") as caught:
        build(source, PAIR, jobs=1, report=lambda _: None)
    (log,) = (home / "data" / "logs").iterdir()
    assert str(log) in str(caught.value)
    assert "no such compiler" in log.read_text()
    assert left_behind() == []


@pytest.mark.parametrize(("change", "complaint"), [
    (("chmod +x python", "false"), "ended with status 2"),
    (("exit 0", "echo broken >&2; exit 1"), "just built does not run: broken"),
    (("mkdir -p", "false"), "ended with status 2"),
    (("> python", "> other"), "ended with status 2"),
])
def test_a_failure_at_any_later_step_leaves_nothing(home, change, complaint):
    source = SourceTarball.of(tarball(home, CONFIGURE.replace(*change)))
    with pytest.raises(BuildError, match=complaint):
        build(source, PAIR, jobs=1, report=lambda _: None)
    assert installed() == []
    assert left_behind() == []


def test_the_first_of_a_pair_stays_when_the_second_fails(home):
    source = SourceTarball.of(tarball(home, CONFIGURE.replace("label=3.99t", "exit 1")))
    with pytest.raises(BuildError):
        build(source, PAIR, jobs=1, report=lambda _: None)
    assert [entry.label for entry in installed()] == ["3.99"]
    assert left_behind() == []


def test_an_interrupted_build_ends_its_processes_and_leaves_nothing(home):
    fifo = home / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    # Whoever is started here holds the pipe open: its end is the end of all of them.
    path = tarball(home, f"#!/bin/sh\nexec 3>{fifo}\necho ready >&3\nsleep 600 &\nwait\n")
    program = ("import sys; from pathlib import Path; from gilscope.toolkit.builds.compile_python import *\n"
               "wanted = [PythonRequest('3.99', free_threaded=False)]\n"
               "build(SourceTarball.of(Path(sys.argv[1])), wanted, jobs=1, report=id)")
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stderr=subprocess.DEVNULL,
                               env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert next_bytes(reader) == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert next_bytes(reader) == b""
    os.close(reader)
    assert process.wait(PATIENCE) != 0
    assert left_behind() == []


def test_what_a_killed_installation_left_is_removed_by_the_next(home):
    (pythons_dir() / f"{compile_python.STAGING}old").mkdir(parents=True)
    build(SourceTarball.of(tarball(home)), PAIR, jobs=1, report=lambda _: None)
    assert left_behind() == []


@pytest.mark.parametrize(("content", "complaint"), [
    (b"not an archive", "cannot unpack"),
    (None, "cannot read the source"),
])
def test_a_source_that_is_none_is_refused_by_name(home, content, complaint):
    path = home / "Python.tar.xz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BuildError, match=rf"{complaint}.*Python\.tar\.xz"):
        build(SourceTarball.of(path), PAIR, jobs=1, report=lambda _: None)


def test_an_archive_without_cpython_is_refused(home):
    path = home / "other.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(__file__, arcname="other/readme")
    with pytest.raises(BuildError, match="does not hold a CPython source"):
        build(SourceTarball.of(path), PAIR, jobs=1, report=lambda _: None)
    assert left_behind() == []


def test_a_source_of_another_version_is_refused(home):
    with pytest.raises(BuildError, match=r"is CPython 3\.98\.0: 3\.99 cannot be built"):
        build(SourceTarball.of(tarball(home, version="3.98.0")), PAIR, jobs=1, report=lambda _: None)


@pytest.mark.parametrize(("needed", "optimize"), [("NEEDED_BYTES", False), ("OPTIMIZED_BYTES", True)])
def test_a_full_disk_is_told_before_anything_is_unpacked(home, monkeypatch, needed, optimize):
    monkeypatch.setattr(compile_python, needed, 1 << 60)
    pair = [replace(each, optimize=optimize) for each in PAIR]
    with pytest.raises(BuildError, match=r"MiB free; set GILSCOPE_DATA"):
        build(SourceTarball.of(tarball(home)), pair, jobs=1, report=lambda _: None)


def test_a_folder_that_cannot_be_made_is_told(home):
    (home / "data").write_text("a file")
    with pytest.raises(BuildError, match="set GILSCOPE_DATA"):
        build(SourceTarball.of(tarball(home)), PAIR, jobs=1, report=lambda _: None)


def test_a_damaged_manifest_counts_as_not_installed(home):
    (entry, _) = build(SourceTarball.of(tarball(home)), PAIR, jobs=1, report=lambda _: None)
    (Path(entry.executable).parents[1] / compile_python.MANIFEST).write_text("{")
    assert [each.label for each in installed()] == ["3.99t"]
    build(SourceTarball.of(tarball(home / "again")), PAIR[:1], jobs=1, report=lambda _: None)


def test_the_folder_tells_source_and_flags_apart(home):
    one, other = SourceTarball(Path("a"), "a", "aa"), SourceTarball(Path("b"), "b", "bb")
    wanted = [*PAIR, PythonRequest("3.99", free_threaded=False, optimize=True)]
    names = {compile_python.prefix_name(source, each, "3.99.1") for source in (one, other) for each in wanted}
    assert len(names) == 6


def test_a_command_that_does_not_exist_is_told(tmp_path):
    with pytest.raises(CommandFailedError, match="cannot start /nowhere/make"):
        run_logged(["/nowhere/make"], log=tmp_path / "log")


@pytest.mark.parametrize("name", ["3.11", "2.7", "latest", "3.12t", "3.14.1", "3.14td"])
def test_versions_that_cannot_be_installed_are_refused(name):
    with pytest.raises(UnknownNameError, match="cannot be installed"):
        install(PythonInstallRequest(names=(name,)), lambda _: None)


def test_a_tarball_is_installed_once(home):
    request = PythonInstallRequest(names=("3.99", "3.99t"), tarball=tarball(home))
    assert all("built in" in line for line in install(request, lambda _: None).lines)
    again = install(request, pytest.fail)
    assert [line.split(":")[0] for line in again.lines] == ["3.99 is installed already", "3.99t is installed already"]


@pytest.mark.parametrize("optimized", [True, False])
def test_builds_with_and_without_optimization_are_no_pair(home, optimized, monkeypatch):
    monkeypatch.setattr(installing, "find_builds", lambda: FoundBuilds(builds=(), problems=()))   # none of uv
    source = SourceTarball.of(tarball(home))
    mixed = [PythonRequest("3.99", free_threaded=False, optimize=optimized),
             PythonRequest("3.99", free_threaded=True, optimize=not optimized)]
    build(source, mixed, jobs=1, report=lambda _: None)
    assert installing._already_installed(PAIR, optimize=False) == ()
    wanted = [replace(each, optimize=True) for each in PAIR]
    made = build(source, wanted, jobs=1, report=lambda _: None)
    for pair, optimize in ((PAIR, False), (wanted, True)):   # released builds have PGO, too: it serves both
        assert [line.split(": ")[1] for line in installing._already_installed(pair, optimize=optimize)] == [
            each.executable for each in made]


def test_of_two_installations_at_once_one_builds_and_the_other_takes_it(home):
    steps, met = [], threading.Event()

    def report(step):
        steps.append(step.what)
        if step.what.startswith("waiting") or steps.count("3.99: configure") == 2:
            met.set()
        elif step.what == "3.99: configure":
            assert met.wait(PATIENCE)

    request = PythonInstallRequest(names=("3.99",), tarball=tarball(home))
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(install, request, report) for _ in range(2)]
        outcomes = [each.result(PATIENCE) for each in both]
    assert steps.count("3.99: configure") == 1
    assert [Path(entry.executable).name for entry in installed()] == ["python3.99"]
    assert all(len(each.lines) == 1 for each in outcomes)
    assert left_behind() == []


def test_a_tarball_needs_versions(home):
    with pytest.raises(UnknownNameError, match="name the versions"):
        install(PythonInstallRequest(tarball=tarball(home)), lambda _: None)


def test_builds_of_two_sources_do_not_count_as_a_pair(home):
    for folder, version, wanted in (("a", "3.99.1", PAIR[0]), ("b", "3.99.2", PAIR[1])):
        build(SourceTarball.of(tarball(home / folder, version=version)), [wanted], jobs=1, report=lambda _: None)
    assert installing._installed_alike(PAIR[:1])
    assert not installing._installed_alike(PAIR)


def test_missing_libraries_are_named_with_their_packages(home):
    configure = CONFIGURE.replace("exit 0", "echo ssl; echo zlib")
    outcome = install(PythonInstallRequest(names=("3.99",), tarball=tarball(home, configure)), lambda _: None)
    assert "apt-get install libssl-dev zlib1g-dev" in outcome.notes[0].text


def test_every_way_that_failed_is_told(monkeypatch):
    monkeypatch.setattr(fetch_source.shutil, "which", lambda *_, **_options: None)
    with pytest.raises(BuildError, match=r"no apt-get(?s:.*)uv: not installed(?s:.*)--source"):
        install(PythonInstallRequest(names=("3.14", "3.14t")), lambda _: None)


def test_uv_is_asked_first_and_its_reason_is_kept(home, monkeypatch):
    uv = home / "uv-command"
    uv.write_text("#!/bin/sh\necho error: it broke >&2\necho '  cause: no network' >&2\nexit 1\n")
    uv.chmod(0o755)
    monkeypatch.setattr(installing, "uv_command", lambda: str(uv))
    assert installing._install_with_uv(["3.14"], lambda _: None) == "no network"
    uv.write_text("#!/bin/sh\nexit 0\n")
    assert installing._install_with_uv(["3.14"], lambda _: None) == ""


DEB822 = """\
Types: deb
# a remark
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
"""


def test_the_machines_mirrors_are_read_in_both_formats(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://no.example x main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://one.example/debian bookworm main contrib  # note\n")
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "other.sources.disabled").write_text(DEB822)
    assert fetch_source.machine_mirrors(tmp_path) == [
        fetch_source.Mirror("http://one.example/debian", ("bookworm",), "main contrib", "/k.gpg"),
        fetch_source.Mirror("http://mirror.example/debian", ("bookworm", "bookworm-updates"), "main",
                            "/usr/share/keyrings/debian.gpg"),
        fetch_source.Mirror("http://mirror.example/security", ("bookworm-security",), "main", ""),
    ]


def test_an_inline_key_is_carried_over():
    text = "URIs: http://a\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\nEnabled: yes\n"
    (mirror,) = fetch_source._deb822_entries(text)
    assert mirror.signed_by == "-----BEGIN\n .\n abc"
    assert "Signed-By: -----BEGIN\n .\n abc\n" in fetch_source.source_entries([mirror], "debian", "bookworm")


def test_newer_suites_are_added_to_the_distributions_own_mirror_only():
    mirrors = [fetch_source.Mirror("http://a", ("bookworm", "bookworm-updates"), "main", "/k"),
               fetch_source.Mirror("http://b", ("bookworm-security",), "main", ""),
               fetch_source.Mirror("http://c", ("nodistro",), "main", "")]
    assert fetch_source.source_entries(mirrors, "debian", "bookworm") == (
        "Types: deb-src\nURIs: http://a\nSuites: stable testing unstable bookworm bookworm-updates\n"
        "Components: main\nSigned-By: /k\n")


def test_signatures_are_checked_whatever_the_machine_says():
    for line in ('Acquire::AllowInsecureRepositories "true";', 'Acquire::https::Verify-Peer "false";'):
        kept = bool(fetch_source.OPTIONS_KEPT.fullmatch(line))
        assert kept == ("https" in line)  # transport options are the machine's; signatures are not
    assert fetch_source.OPTIONS_KEPT.fullmatch('Acquire::http::Proxy "http://proxy.example:3128";')
    assert not fetch_source.OPTIONS_KEPT.fullmatch('APT::Update::Post-Invoke:: "rm -f /var/cache/apt/*";')


def test_package_versions_are_ordered_as_debian_does():
    ordered = ["3.9.1-1", "3.15.0~b2-1", "3.15.0~rc1-1", "3.15.0-1", "3.15.0-2", "3.15.2-1"]
    assert sorted(ordered[3:] + ordered[:3], key=fetch_source._version_key) == ordered


def test_an_older_release_is_taken_when_the_mirror_lacks_the_newest(tmp_path):
    commands = tmp_path / "commands"
    commands.mkdir()
    answers = {
        "apt-cache": "printf 'Package: python3.99\\nVersion: 3.99.2-1\\n\\nVersion: 3.99.1-1\\n'",
        "apt-get": 'case "$*" in '
                   '*3.99.2*) echo "E: Failed to fetch http://m/p/x.tar.xz  404  Not Found" >&2; exit 100;; '
                   "*) echo source > python3.99_3.99.1.orig.tar.xz;; esac",
    }
    for name, body in answers.items():
        (commands / name).write_text(f"#!/bin/sh\n{body}\n")
        (commands / name).chmod(0o755)
    source = fetch_source.DistributionSource(tmp_path, {"PATH": f"{commands}:{os.environ['PATH']}"})
    # subprocess looks a command up in the PATH of the environment it is given.
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    assert source.download("3.99", downloads).name == "python3.99 3.99.1-1 (apt-get source)"
    (commands / "apt-get").write_text((commands / "apt-get").read_text().replace("*3.99.2*", "*"))
    (downloads / "python3.99_3.99.1.orig.tar.xz").unlink()
    with pytest.raises(BuildError, match=r"3\.99\.2-1: Failed to fetch x\.tar\.xz 404 Not Found; 3\.99\.1-1"):
        source.download("3.99", downloads)


@pytest.mark.slow
@pytest.mark.network
def test_the_distributions_source_leaves_the_machines_lists_alone():
    if not (Path("/etc/debian_version").exists() and compile_python.shutil.which("apt-get")):
        pytest.skip("not a Debian")
    lists = Path("/var/lib/apt/lists")
    before = {path: path.stat().st_mtime_ns for path in lists.glob("*")}
    with fetch_source.distribution_source(lambda _: None) as source:
        assert source.versions("3.13")
        folder = source._folder
    assert not folder.exists()
    assert {path: path.stat().st_mtime_ns for path in lists.glob("*")} == before


def test_a_manifest_can_be_read_by_people(home):
    (entry, _) = build(SourceTarball.of(tarball(home)), PAIR, jobs=1, report=lambda _: None)
    manifest = json.loads((Path(entry.executable).parents[1] / compile_python.MANIFEST).read_text())
    assert manifest["source"] == "Python-3.99.1.tar.gz"
