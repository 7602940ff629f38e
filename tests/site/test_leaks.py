"""A site that would tell of a person or a machine is not put in place, and --check says what of it would."""

import json
import shutil

import pytest

from gilscope.toolkit.cli import main
from gilscope.toolkit.redaction import PUBLIC, PrivateNames
from gilscope.toolkit.site.making import site_leaks
from tests.site.made import EXAMPLE

pytestmark = pytest.mark.newest


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Return a run that tells of its machine wherever a user's text may stand, by a user called annabel."""
    monkeypatch.setattr("socket.gethostname", lambda: "thishost")
    monkeypatch.setenv("USER", "annabel")
    folder = tmp_path / "results"
    shutil.copytree(EXAMPLE / "own-function", folder)
    header = json.loads((folder / "run.json").read_text())
    header["notes"] = [{"text": "run by Annabel in /home/annabel/work/x.py"}]
    header["machine"]["hostname"] = "theirhost"
    cell = header["cells"][-1]
    header["failures"] = [{"cell": cell, "kind": "exception", "round": 0, "output": "/home/annabel/secret",
                           "reason": "no file /srv/project/x.csv on theirhost"}]
    (folder / "run.json").write_text(json.dumps(header))
    return folder


def test_site_that_tells_is_refused(results, tmp_path, capsys):
    out = tmp_path / "site"
    assert main(["site", str(results), "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert f"{out} was not written" in told
    assert "the name of the user, 'Annabel'" in told
    assert "the name of the host, 'theirhost'" in told
    assert "GILSCOPE_PUBLIC='" in told
    assert "/home" not in told, "folders are left out by themselves"
    assert not out.exists()


@pytest.mark.slow
def test_what_may_go_out_does_and_folders_do_not(results, tmp_path, monkeypatch):
    out = tmp_path / "site"
    monkeypatch.setenv(PUBLIC, "annabel,theirhost")
    assert main(["site", str(results), "--out", str(out)]) == 0
    text = "".join(path.read_text() for path in out.rglob("*") if path.is_file())
    assert "run by Annabel in &lt;folder&gt;/x.py" in text
    assert "/home/annabel" not in text
    assert "/srv/project" not in text


@pytest.mark.slow
def test_check_lists_what_would_go_out_and_keeps_nothing(results, tmp_path, capsys):
    assert main(["site", str(results), "--check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("the name of the user, 'Annabel'") and ".html: " in line for line in lines)
    assert any(line.startswith("the name of the host, 'theirhost'") and "run.json: " in line for line in lines)
    assert [each.name for each in tmp_path.iterdir()] == ["results"]
    assert main(["site", str(EXAMPLE / "second-worker"), "--check"]) == 0
    assert capsys.readouterr().out == "nothing private would be published\n"


def test_check_names_a_damaged_run_as_out_does(tmp_path, capsys):
    for name in ("good", "bad"):
        shutil.copytree(EXAMPLE / "own-function", tmp_path / "in" / name)
    (tmp_path / "in" / "bad" / "3.14.json").write_text("{")
    said = []
    for asked in (["--check"], ["--out", str(tmp_path / "site")]):
        assert main(["site", str(tmp_path / "in"), *asked]) == 2
        told = capsys.readouterr()
        said.append(next(line for line in told.err.splitlines() if "bad" in line))
        assert "nothing private would be published\n" not in told.out
    assert said[0] == said[1]


def test_every_kind_of_file_is_looked_through(tmp_path):
    for name in ("a.html", "b.svg", "data/c.json", "data/d.js", "assets/ours.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('"/home/ann/x"')
    assert [leak.where.partition(":")[0] for leak in site_leaks(tmp_path, PrivateNames())] == [
        "a.html", "b.svg", "data/c.json", "data/d.js"]
