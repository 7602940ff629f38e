"""Ctrl-C during an evaluation."""

from gilscope.toolkit.cli import main
from gilscope.toolkit.commands import evaluate
from tests.fakes import make_build


def test_what_was_done_is_said_to_be_kept(monkeypatch, tmp_path, capsys):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate.Evaluator, "run", stop)
    monkeypatch.setattr(evaluate, "_targets", lambda *_: (make_build("3.14t"),))
    monkeypatch.setattr(evaluate, "EvaluationCache", lambda *_, **__: None)
    (tmp_path / "requirements.txt").write_text("thing\n")
    assert main(["evaluate", str(tmp_path)]) == 130
    said = capsys.readouterr().err
    assert "the finished parts are saved: run the same command again to continue" in said
    assert "gilscope: interrupted" in said
