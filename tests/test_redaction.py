"""What goes out tells no folder, no user, no host and no secret; what only looks like one stays as it is."""

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.redaction import (
    PUBLIC,
    PrivateNames,
    leak_lines,
    of_this_machine,
    refuse,
    without_addresses,
    without_folders,
)

ROOT = "/home/ann/my bank"


@pytest.mark.parametrize(("text", "expected"), [
    ("/home/ann/my bank/bank.py:14", "bank.py:14"),
    ("/home/ann/my bank", "."),
    ("/home/ann/my bankers/x/y.py", "<folder>/my bankers/x/y.py"),     # another folder, and its name has a blank
    ("/srv/py/lib/python3.14/queue.py:3", "<build>/lib/python3.14/queue.py:3"),
    ("/usr/lib/python3.14t/queue.py", "<build>/lib/python3.14t/queue.py"),
    ("/home/ann/.pyenv/versions/3.14t/bin/python3.14t: not found", "<build>/bin/python3.14t: not found"),
    ("/x/lib/python3.14/site-packages/numpy/core.py", "<packages>/numpy/core.py"),
    ('File "/tmp/pytest-of-ann/a/mod.py", line 3', 'File "<folder>/mod.py", line 3'),
    ("no wheel below /home/ann.", "no wheel below <home>."),
    ("in /root and /home/ann", "in <home> and <home>"),
    ("LDFLAGS=-L/opt/py/lib -Wl,-rpath,/opt/py/lib", "LDFLAGS=-L<folder>/lib -Wl,-rpath,<folder>/lib"),
    ("PATH=/opt/a/bin:/home/ann/bin", "PATH=<folder>/bin:<folder>/bin"),
    ("file:///home/ann/x.json", "file://<folder>/x.json"),
])
def test_folders_are_replaced_by_what_they_stand_for(text, expected):
    assert without_folders(text, ROOT) == expected
    assert not list(PrivateNames().leaks(expected))


@pytest.mark.parametrize("text", [
    "read/write/exec", "10/20/30", "a 3.14/3.14t pair", "src/app/io.py:3", "../a/b.py", "~/.cache/x", "and / or / both",
    "https://docs.python.org/3/library/threading.html", "23,100/s", "<build>/lib/python3.14/queue.py", "text/html",
    "/proc/pressure/cpu", "/usr/bin/env", "/dev/null", "http://127.0.0.1:80/a/b", "primes/runner=threads/workers=2",
])
def test_what_is_no_folder_of_anybody_stays(text):
    assert without_folders(text, ROOT) == text
    assert not list(PrivateNames().leaks(text))


@pytest.mark.parametrize(("text", "what"), [
    ("in /home/bob/x.py", "a home folder"), ("/Users/bob/x", "a home folder"), ("at /root/x.py", "a home folder"),
    ("/srv/secret-project/x.py", "a folder"), ("-I/srv/include/x", "a folder"),
    ("by Ann, who", "the name of the user"), ("ann-laptop", "the name of the user"),
    ("on box7", "the name of the host"), ("on box7.corp.example", "the name of the host"),
    ("key hunter2-0451!", "the value of API_TOKEN"),
    ("mail ann.b@corp.example, please", "an address"), ("ssh://bob:pw@build7.corp.example/x", "an address"),
    ("bob@10.0.0.7: refused", "an address"),
    ("8f14e45fceea167a5a36", "the value of SOMETHING"), ("in acme-rewrite:", "the name of the environment"),
])
def test_what_is_private_is_found(text, what, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "box7.corp.example")
    private = of_this_machine({
        "USER": "ann", "API_TOKEN": "hunter2-0451", "SOMETHING": "8f14e45fceea167a5a36", "LANG": "en_US.UTF-8",
        "VIRTUAL_ENV": "/srv/acme-rewrite"})
    assert what in [leak.what for leak in private.leaks(text)]


def test_common_names_and_parts_of_words_tell_nothing(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "localhost")
    private = of_this_machine({"USER": "root", "HOME": "/home/ann", "VIRTUAL_ENV": "/srv/.venv", "TOKENS": "12345678",
                               "PYTHON_SHA256": "8f14e45fceea167a5a36", "USE_AUTH": "true", "AUTH": "basic"})
    assert private.words == {"ann": "the name of the user"}
    assert not list(private.leaks("the root of planning: Hannah cannot, 12345678"))


def test_what_its_owner_calls_public_may_go_out(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "box7")
    private = of_this_machine({"USER": "ann", PUBLIC: "Ann, /srv/data/x"}, hosts=["box8"])
    assert not list(private.leaks("ann's, in /srv/data/x"))
    assert [leak.text for leak in private.leaks("Box7 and box8")] == ["Box7", "box8"]


@pytest.mark.parametrize(("text", "expected"), [
    ("ann@build7: Permission denied", "<user>@<host>: Permission denied"),
    ("scp bob@box8.corp.example:x y", "scp <user>@<host>:x y"), ("'ann.b+x@corp.example'", "'<user>@<host>'"),
    ("ssh://bob:hunter2@build7/x", "ssh://<user>@<host>/x"), ("bob@10.0.0.7", "<user>@<host>"),
    ("ann@build7.", "<user>@<host>."),
    *((text, text) for text in (
        "actions/checkout@v4", "checkout@v5", "python@3.14", "no @ b", "@cache", "x @ y", "pkg@https://example.org/x",
        "<object at 0x7f>", "unsupported operand type(s) for @: 'int' and 'int'")),
])
def test_addresses_in_what_others_said_are_left_out(text, expected):
    assert without_addresses(text) == expected
    assert not list(PrivateNames().leaks(expected))


def test_page_may_multiply_matrices_and_name_a_public_repository():
    assert not list(PrivateNames().leaks("y = a@b; git@github.com:owner/repository; a@b.T"))
    found = PrivateNames(public=frozenset({"me@example.org"})).leaks("me@example.org, it@example.org")
    assert [leak.text for leak in found] == ["it@example.org"]


PAGE = """<!DOCTYPE html><title>of ann</title><style>/*/home/style/x*/</style>
<script>"/home/script/x".slice(/a/g)</script>
<p title="/home/attribute/x">&#97;nn <a href="../a/b.html">x</a><!-- /home/comment/x --></p>
<script type="application/json">{"path": "/home/data/x"}</script><svg><path d="M1 2 /home/drawn/x"/></svg>
<img src="data:image/png;base64,+/ab/cd/ef" alt="">"""


def test_a_page_is_looked_through_as_people_and_scripts_read_it():
    private = PrivateNames(words={"ann": "the name of the user"})
    assert [leak.text for leak in private.page_leaks(PAGE)] == [
        "/home/attribute/x", "/home/comment/x", "/home/data/x", "ann", "ann"]


def test_refused_with_what_and_where_and_what_to_do():
    private = PrivateNames(words={"ann": "the name of the user"})
    leaks = list(private.leaks(f"{'word ' * 20}for ann and for ann, who keeps it in /srv/a/b"))
    assert leak_lines(leaks)[0] == "a folder, '/srv/a/b': ...and for ann, who keeps it in /srv/a/b"
    with pytest.raises(ToolkitError) as refused:
        refuse("page.html", leaks)
    assert str(refused.value).startswith("page.html was not written, since it would reveal:\n  a folder, '/srv/a/b': ")
    assert "the name of the user, 'ann', 2 times: ..." in str(refused.value)
    assert str(refused.value).endswith(f"{PUBLIC}='/srv/a/b,ann'")
    refuse("page.html", [])


@pytest.mark.parametrize("folder", ["/work/home", "/home/runner", "/srv/site"])
def test_home_called_like_a_word_of_our_pages_is_nobodys(folder):
    known = of_this_machine({"HOME": folder})
    assert not [*known.leaks("Home Compare: a site of the runner's runs")]
