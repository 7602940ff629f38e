"""Answers with a secret: what is noise, what is no answer, and what of the json module can be replaced."""

import json

import pytest

from gilscope.toolkit.processes.sealed_answers import Seal, new_secret

SEAL = Seal("5ec2e7")
FIELDS = {"kind": "measured", "values": [1, 2.5, None, True, float("inf")],
          "text": 'a "b"\n\N{SNOWMAN}', "in": {"x": {}}}


def test_what_is_sealed_is_opened():
    assert SEAL.opened(SEAL.line(FIELDS).removesuffix(b"\n")) == FIELDS
    assert SEAL.line(FIELDS).count(b"\n") == 1


def test_secrets_differ():
    assert len({new_secret() for _ in range(100)}) == 100


@pytest.mark.parametrize("noise", [b"", b"{}", b'{"event": "end", "turn": 0}', b"\xff\x00", b'other{"a": 1}'])
def test_a_line_of_somebody_else_is_no_answer(noise):
    assert SEAL.opened(noise) is None


@pytest.mark.parametrize("rest", [b"", b"{", b"[1]", b"7", b"\xff", b"[" * 100_000, b"not json"])
def test_an_answer_that_cannot_be_read_is_none(rest):
    assert SEAL.opened(b"5ec2e7" + rest) is None


def test_noise_without_an_end_of_line_hides_no_answer():
    assert SEAL.opened(b'{"hello' + SEAL.line({"a": 1})) == {"a": 1}


def test_replacing_parts_of_json_changes_nothing(monkeypatch):
    for owner, name in ((json, "dumps"), (json, "loads"), (json, "_default_encoder"), (json.JSONEncoder, "encode"),
                        (json.JSONEncoder, "iterencode"), (json.encoder, "c_make_encoder")):
        monkeypatch.setattr(owner, name, lambda *_, **__: "broken")
    assert SEAL.line({"a": [1]}) == b'5ec2e7{"a": [1]}\n'
