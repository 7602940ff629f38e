"""CI jobs, classifiers and images without bytecode are found in a project's files."""

import pytest

from gilscope.toolkit.evaluate.decision import UNREAD
from gilscope.toolkit.evaluate.project.ci_and_classifiers import upkeep

CLASSIFIER = "Programming Language :: Python :: Free Threading :: 2 - Beta"


def test_empty_folder_says_nothing(tmp_path):
    assert upkeep(tmp_path) == UNREAD


@pytest.mark.parametrize(("file", "text", "there"), [
    (".github/workflows/ci.yml", 'python: ["3.14", "3.14t"]', True),
    (".github/workflows/ci.yaml", "tox -e py314t", True), (".gitlab-ci.yml", "image: free-threaded", True),
    (".github/workflows/ci.yml", 'CIBW_BUILD: "cp314t-*"', True),
    (".circleci/config.yml", "python-freethreading", True),
    (".github/workflows/ci.yml", 'python: ["3.14"]', False), (".github/workflows/ci.yml", "# 3.14t: later", False),
    ("README.yml", "3.14t", False),
])
def test_job_on_a_build_without_a_gil(tmp_path, file, text, there):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert upkeep(tmp_path).ci == (file if there else "")


@pytest.mark.parametrize(("file", "text", "classifier", "published"), [
    ("pyproject.toml", f'[project]\nclassifiers = ["{CLASSIFIER}"]', CLASSIFIER, True),
    ("pyproject.toml", f'[project]\nclassifiers = [\n  # "{CLASSIFIER}"\n]', "", True),
    ("pyproject.toml", "[tool.ruff]\n", "", False), ("setup.cfg", "[metadata]\nname = app\n", "", True),
    ("setup.py", f"setup(classifiers=['{CLASSIFIER[:50]}'])", "Programming Language :: Python :: Free Threading", True),
    ("pyproject.toml", "[tool.poetry]\nname = 'app'\n", "", True),
])
def test_classifier(tmp_path, file, text, classifier, published):
    (tmp_path / file).write_text(text)
    found = upkeep(tmp_path)
    assert (found.classifier, found.published) == (classifier, published)


@pytest.mark.parametrize(("file", "text", "lines"), [
    ("Dockerfile", "FROM python:3.14t\nENV PYTHONDONTWRITEBYTECODE 1\n", [2]),
    ("Dockerfile", "ENV PYTHONUNBUFFERED=1 \\\n    PYTHONDONTWRITEBYTECODE=1\n", [2]),
    ("deploy/web.Dockerfile", "ENV PYTHONDONTWRITEBYTECODE='x'", [1]),
    ("compose.yaml", 'environment:\n  PYTHONDONTWRITEBYTECODE: "1"\n', [2]),
    ("docker-compose.dev.yml", "environment:\n  - PYTHONDONTWRITEBYTECODE=1\n", [2]),
    ("Dockerfile", "# ENV PYTHONDONTWRITEBYTECODE=1", []),
    ("Dockerfile", 'ENV PYTHONDONTWRITEBYTECODE=""', []),
    ("Dockerfile", "ENV PYTHONDONTWRITEBYTECODE=1\nRUN python -m compileall /app\n", []),
    ("Dockerfile", "ENV PYTHONDONTWRITEBYTECODE=1\nRUN uv sync --compile-bytecode\n", []),
    ("notes.txt", "PYTHONDONTWRITEBYTECODE=1", []),
])
def test_image_that_is_told_to_write_no_bytecode_and_does_not_compile_it(tmp_path, file, text, lines):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert upkeep(tmp_path).no_bytecode == tuple(f"{file}:{line}" for line in lines)


def test_file_that_is_no_text_says_nothing(tmp_path):
    (tmp_path / "setup.cfg").write_bytes(b"\xff\xfe\0")
    assert upkeep(tmp_path) == UNREAD
