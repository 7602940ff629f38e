"""Which addresses a site may be said to have."""

import argparse

import pytest

from gilscope.toolkit.cli import main
from gilscope.toolkit.commands.site import web_address

pytestmark = pytest.mark.newest


@pytest.mark.parametrize(("text", "address"), [
    ("https://me.github.io/results/", "https://me.github.io/results/"),
    ("http://localhost:8000", "http://localhost:8000"),
    ("https://me.github.io/a b/(c)", "https://me.github.io/a%20b/%28c%29"),
    ("https://me.github.io/a%20b/", "https://me.github.io/a%20b/"),
    ("https://me.github.io/[x]<y>`z`", "https://me.github.io/%5Bx%5D%3Cy%3E%60z%60"),
])
def test_address_holds_in_markdown(text, address):
    assert web_address(text) == address


@pytest.mark.parametrize(("text", "said"), [
    ("javascript:alert(1)", "does not begin with http"), ("example.org/x", "does not begin with http"),
    ("", "does not begin with http"), ("https://", "names no host"), ("https:///x", "names no host"),
    ("https://me@host/x", "names no host"), ("https://a)b/", "names no host"),
    ("https://me.github.io/a b/?x=1)", "has a '\\?' or '#'"), ("https://me.github.io/#x", "has a '\\?' or '#'"),
    ("https://[x/", "is no address"),
])
def test_what_is_no_address_is_said(text, said):
    with pytest.raises(argparse.ArgumentTypeError, match=said):
        web_address(text)


def test_site_refuses_what_is_no_address(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["site", "--check", "--url", "javascript:alert(1)"])
    assert "does not begin with http:// or https://" in capsys.readouterr().err
