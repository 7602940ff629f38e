"""Check whether build back ends take gilscope's results for a package, or include them in a distribution.

    python -m tests.benchmarks.build_backends

Builds sdist and wheel of a flat project with results, by each back end, in a new environment with packages from PyPI.
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from gilscope.toolkit.store.labels import DEFAULT_RESULTS, EARLIER_RESULTS, make_folder

BACKENDS = {  # name -> requirement, module, further lines of pyproject.toml
    "setuptools": ("setuptools", "setuptools.build_meta", ""),
    "setuptools, packages.find": ("setuptools", "setuptools.build_meta", "[tool.setuptools.packages.find]"),
    "hatchling": ("hatchling", "hatchling.build", ""),
    "flit": ("flit_core", "flit_core.buildapi", ""),
    "poetry-core": ("poetry-core", "poetry.core.masonry.api", ""),
    "pdm-backend": ("pdm-backend", "pdm.backend", ""),
}


def main() -> None:
    """Print a table of back ends and folders."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        python = home / "env" / "bin" / "python"
        names = sorted({requirement for requirement, _, _ in BACKENDS.values()})
        subprocess.run([python, "-m", "pip", "install", "--quiet", "build", *names], check=True)
        print(f"{'back end':<28}{EARLIER_RESULTS!s:<28}{DEFAULT_RESULTS}")
        for number, (name, back_end) in enumerate(BACKENDS.items()):
            found = [tried(python, home / f"{number}-{results}", results, *back_end)
                     for results in (EARLIER_RESULTS, DEFAULT_RESULTS)]
            print(f"{name:<28}{found[0]:<28}{found[1]}")


def tried(python: Path, project: Path, results: Path, requirement: str, module: str, more: str) -> str:
    """Return "does not build", or the archives of a project that contain the results in one of its folders."""
    (project / "shopstats").mkdir(parents=True)
    (project / "shopstats" / "__init__.py").write_text('"""A shop."""\n')
    (project / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["{requirement}"]\nbuild-backend = "{module}"\n'
        f'[project]\nname = "shopstats"\nversion = "1"\ndescription = "a shop"\n{more}\n')
    make = (f"from pathlib import Path; from {make_folder.__module__} import make_folder; "
            f"make_folder(Path({str(results)!r}, 'first'))")
    subprocess.run([sys.executable, "-c", make], cwd=project, check=True)
    (project / results / "first" / "run.json").write_text('{"format": "gilscope run"}\n')
    build = [python, "-m", "build", "--no-isolation", "."]
    if subprocess.run(build, cwd=project, capture_output=True, check=False).returncode:
        return "does not build"
    held = []
    for archive in sorted((project / "dist").iterdir()):
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                names = opened.namelist()
                tops = [opened.read(each).decode() for each in names if each.endswith("/top_level.txt")]
            held += ["wheel"] * any(str(results) in text for text in (*names, *tops))
        else:
            with tarfile.open(archive) as opened:
                held += ["sdist"] * any(f"/{results}/" in name for name in opened.getnames())
    return f"in the {' and '.join(held)}" if held else "not in any"


if __name__ == "__main__":
    main()
