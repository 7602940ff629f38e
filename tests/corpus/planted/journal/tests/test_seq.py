from journal import seq


def test_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(seq, "PATH", str(tmp_path / "x"))
    assert seq.entry(3) == 1
    assert seq.entry(3) == 2
