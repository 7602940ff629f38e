"""Download CPython's source from the Linux distribution with `apt-get source` and a temporary configuration.

That uses the machine's mirrors, proxies and keys, and adds the source suites of newer releases; the machine's own
configuration, package lists and hooks are left alone, and signatures are always checked.  Only CPython's original
tarball is used: the distribution's patches move site-packages and disable ensurepip.  Runs under Python 3.9.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.compile_python import InstallStep, SourceTarball
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.builds.compile_python import Report

# Aliases that every mirror of the distribution has, so that no list of release names has to be kept up to date here.
NEWER_SUITES = {"debian": ("stable", "testing", "unstable"), "ubuntu": ("devel",)}
OPTIONS_KEPT = re.compile(r'Acquire::(http|https|ftp|Retries|Check-|ForceIPv|Languages|GzipIndexes)[\w:.-]* "[^"]*";')
COMMAND_SECONDS = 300

SIGNATURE_OPTIONS = """\
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
"""


@dataclass(frozen=True)
class Mirror:
    """One entry of the machine's package sources."""

    uris: str
    suites: tuple[str, ...]
    components: str
    signed_by: str      # a keyring's path or an inline key, "" for the machine's trusted keys


class DistributionSource:
    """The distribution's source packages; usable as long as the temporary configuration exists."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._env = env

    def versions(self, minor: str) -> list[str]:
        """Return the package versions of CPython `minor` ("3.14") that the mirrors list, newest first."""
        shown = self._run(["apt-cache", "showsrc", "--only-source", f"python{minor}"])
        found = set(re.findall(r"^Version: (\S+)$", shown.stdout, re.MULTILINE))
        return sorted(found, key=_version_key, reverse=True)

    def download(self, minor: str, into: Path) -> SourceTarball:
        """Download the newest release of `minor` that a mirror can deliver.

        Raises:
            BuildError: No listed version could be downloaded; the message has the reason for each.
        """
        tried = []
        for version in self.versions(minor):
            outcome = self._run(
                ["apt-get", "source", "-q", "--download-only", "--tar-only", "--only-source",
                 f"python{minor}={version}"], cwd=into)
            tarball = next(into.glob(f"python{minor}_*.orig.tar.*[!c]"), None)
            if outcome.returncode == 0 and tarball:
                return SourceTarball.of(tarball, f"python{minor} {version} (apt-get source)")
            # A mirror may list a release before it has its files; then the next older one may work.
            tried.append(f"{version}: {_first_error(outcome.stderr)}")
        if not tried:
            raise BuildError(f"the distribution's mirrors have no source package python{minor}")
        raise BuildError(f"no source of python{minor} could be downloaded ({'; '.join(tried)})")

    def update(self) -> None:
        """Download the lists of source packages; apt leaves out suites that are missing or not signed."""
        outcome = self._run(["apt-get", "update", "-q"])
        if not any((self._folder / "lists").glob("*_Sources*")):
            raise BuildError(
                f"the distribution's mirrors gave no list of source packages: {_first_error(outcome.stderr)}")

    def _run(self, command: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        try:
            return run(command, cwd=cwd, env=self._env, timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise BuildError(f"`{' '.join(command[:2])}` did not end within {COMMAND_SECONDS} s") from error


@contextmanager
def distribution_source(report: Report) -> Iterator[DistributionSource]:
    """Give access to the distribution's source packages; remove all temporary files at the end.

    Raises:
        BuildError: The system does not use apt, or no list of source packages can be downloaded.
    """
    if not (shutil.which("apt-get") and shutil.which("apt-cache") and shutil.which("apt-config")):
        raise BuildError("this system has no apt-get to get CPython's source with; give a tarball with --source")
    report(InstallStep("read the distribution's lists of source packages"))
    folder = Path(tempfile.mkdtemp(prefix=temporary.prefix("apt")))
    try:
        # apt downloads as another user, who must be able to enter the folder.
        folder.chmod(0o711)
        source = DistributionSource(folder, {**os.environ, **_configure(folder, machine_mirrors(), _release())})
        source.update()
        yield source
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def machine_mirrors(etc: Path = Path("/etc/apt")) -> list[Mirror]:
    """Return the enabled entries of sources.list and sources.list.d, in both file formats."""
    mirrors: list[Mirror] = []
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]:
        mirrors += _one_line_entries(_read(path))
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        mirrors += _deb822_entries(_read(path))
    return mirrors


def source_entries(mirrors: Sequence[Mirror], distribution: str, codename: str) -> str:
    """Return deb822 source entries for the distribution's own mirrors, with the suites of newer releases."""
    aliases = NEWER_SUITES[distribution]
    entries = []
    for mirror in mirrors:
        if not any(suite in {codename, *aliases, "sid"} for suite in mirror.suites):
            continue  # security and third-party archives: they have no newer CPython
        suites = [*aliases, *(suite for suite in mirror.suites if suite not in aliases)]
        lines = ["Types: deb-src", f"URIs: {mirror.uris}", f"Suites: {' '.join(suites)}",
                 f"Components: {mirror.components}"]
        if mirror.signed_by:
            lines.append(f"Signed-By: {mirror.signed_by}")
        entry = "\n".join(lines) + "\n"
        if entry not in entries:
            entries.append(entry)
    return "\n".join(entries)


def _configure(folder: Path, mirrors: Sequence[Mirror], release: Mapping[str, str]) -> dict[str, str]:
    distribution, codename = release.get("ID", ""), release.get("VERSION_CODENAME", "")
    if distribution not in NEWER_SUITES:
        raise BuildError(f"the source packages of {distribution or 'this system'} are not known; "
                         "give a tarball with --source")
    entries = source_entries(mirrors, distribution, codename)
    if not entries:
        raise BuildError(f"no mirror of {distribution} {codename} in /etc/apt; give a tarball with --source")
    for name in ("parts", "lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "parts" / "gilscope.sources").write_text(entries)
    configuration = folder / "apt.conf"
    # Dir::Etc::parts excludes the machine's hooks: Docker's would delete the machine's own caches.
    configuration.write_text(
        'Dir::Etc::main "/dev/null";\nDir::Etc::parts "/dev/null";\nDir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{folder}/parts";\nDir::State::lists "{folder}/lists";\n'
        f'Dir::Cache "{folder}/cache";\n{_kept_options()}{SIGNATURE_OPTIONS}')
    return {"APT_CONFIG": str(configuration), "LC_ALL": "C"}


def _kept_options() -> str:
    dump = run(["apt-config", "dump", "--format", '%F "%v";%n'])
    return "".join(f"{line}\n" for line in dump.stdout.splitlines() if OPTIONS_KEPT.fullmatch(line))


def _release() -> dict[str, str]:
    pairs = (line.partition("=") for line in _read(Path("/etc/os-release")).splitlines() if "=" in line)
    return {key: value.strip("\"'") for key, _, value in pairs}


def _one_line_entries(text: str) -> Iterator[Mirror]:
    for line in text.splitlines():
        match = re.match(r"deb(?:-src)?\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s+([^#]+)", line.strip())
        if match:
            options, uri, suite, components = match.groups()
            signed = re.search(r"signed-by=(\S+)", options or "", re.IGNORECASE)
            yield Mirror(uri, (suite,), components.strip(), signed.group(1) if signed else "")


def _deb822_entries(text: str) -> Iterator[Mirror]:
    for stanza in re.split(r"\n\s*\n", re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)):
        # A field continues on lines that start with a blank, as an inline key does.
        fields = {key.lower(): value.strip() for key, value in
                  re.findall(r"^([\w-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.MULTILINE)}
        if "uris" in fields and fields.get("enabled", "yes").lower() not in {"no", "false", "0"}:
            yield Mirror(fields["uris"], tuple(fields.get("suites", "").split()),
                         fields.get("components", ""), fields.get("signed-by", ""))


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # most machines have only one of the two forms


def _first_error(output: str) -> str:
    errors = [line[3:].strip() for line in output.splitlines() if line.startswith("E: ")]
    # "Failed to fetch <URL>  404  Not Found [IP: ...]": only the file's name is of interest.
    short = re.sub(r"\S+://\S+/", "", re.sub(r" \[IP: [^\]]*\]", "", errors[0])) if errors else "no reason given"
    return " ".join(short.split())


def _version_key(version: str) -> list[tuple[int, int, str]]:
    """Order package versions as Debian does: numbers by value, "~" (a pre-release) before the end of the text."""
    # Every part as (before or after the end of the text, number, word).
    parts = [(1, int(part), "") if part.isdigit() else (-1 if part == "~" else 0, 1, part)
             for part in re.findall(r"~|\d+|[a-z]+", version)]
    return [*parts, (0, 0, "")]
