"""One grammar of `race: ok` comments: races, code that nothing watches, and C and Cython agree on what is one."""

import pytest

from gilscope.toolkit.evaluate.project.extensions import c_source
from gilscope.toolkit.evaluate.project.extensions.cython_source import remarks_of_cython
from gilscope.toolkit.evaluate.project.extensions.source_text import NO_REASON
from gilscope.toolkit.evaluate.project.racing.unwatched import unreached
from gilscope.toolkit.race.analysis.suppression_comments import suppression_reason
from gilscope.toolkit.race.rewrite import rewrite
from tests.evaluate.project.test_unwatched import looked_at

pytestmark = pytest.mark.newest


def remarks_of_c(text):
    pytest.importorskip("tree_sitter")
    return c_source.remarks_of_c({"a.c": (text, "C")})["a.c"]


COMMENTS = [
    # what follows the code, the reason that is read: "" is a comment without one, None no such comment
    ("  # race: ok", ""), ("  #race: ok why", "why"), ("  # race:ok why", "why"), ("  # race: ok - why", "why"),
    ("  # race: ok: why", "why"), ("  # race:  ok  why, and how", "why, and how"), ("  # noqa  # race: ok why", "why"),
    ("  # race: ok why (#12)", "why (#12)"), ("  # race: ok  # noqa", ""), ("  # race: ok - ", ""),
    ("  # race: okay", None), ("  # trace: ok why", None), ("  # Write race: ok WHY here", None),
    ("  # `race: ok WHY`", None), ("; s = '# race: ok why'", None), ("; s = '''\n# race: ok why'''", None),
]


def reasons_of_races(body):
    return [site.note for site in rewrite(f"def work(x):\n    {body}\n", "app.py")[1] if site.op == "attribute_write"
            or site.key == "size"]


@pytest.mark.parametrize(("after", "reason"), COMMENTS)
def test_race_reads_the_comment(after, reason):
    assert reasons_of_races(f"x.size = 1{after}") == [reason]


@pytest.mark.parametrize(("after", "reason"), COMMENTS)
def test_code_that_nothing_watches_needs_no_reason(tmp_path, after, reason):
    seen, _ = looked_at(tmp_path, f"def work():\n    exec(CODE, STATE){after}")
    assert bool(seen) == (reason is None)


@pytest.mark.parametrize(("after", "reason"), COMMENTS)
def test_cython_needs_a_reason_and_says_so(after, reason):
    code = f"cdef class A:\n    cdef int size\n    def work(self):\n        self.size = 1{after}"
    found = list(remarks_of_cython(code))
    assert [(each.line, each.instead.endswith(NO_REASON)) for each in found] == ([] if reason else [(4, reason == "")])


@pytest.mark.parametrize("mark", ["/*{} */", "//{}", "/*\n *{} */"], ids=["block", "line", "lines"])
@pytest.mark.parametrize(("after", "reason"), [
    (after.replace("  #", "", 1), reason) for after, reason in COMMENTS
    if after.startswith("  # ") and "noqa" not in after])
def test_c_needs_a_reason_and_says_so(after, reason, mark):
    comment = mark.format(after)
    # A comment on several lines begins above: the write stands behind its last line.
    code = f"{comment} self->size = 0;" if "\n" in mark else f"self->size = 0; {comment}"
    found = list(remarks_of_c("#include <Python.h>\nstatic PyObject *work(A *self) {\n" + code + "\n}\n"))
    assert [each.instead.endswith(NO_REASON) for each in found] == ([] if reason else [reason == ""])


def test_string_in_c_is_no_comment():
    code = '#include <Python.h>\nstatic PyObject *work(A *self) {\nself->name = "/* race: ok why */";\n}\n'
    assert len(list(remarks_of_c(code))) == 1


@pytest.mark.parametrize(("comment", "reason"), [
    ("race: ok why", "why"), ("* race: ok why */", "why"), ("/* race: ok */", ""), ("// race: ok // noqa", "")])
def test_delimiters_of_c_belong_to_no_reason(comment, reason):
    assert suppression_reason(comment) == reason


STATEMENTS = [
    ("{}(\n        1,  # race: ok why\n    )", True),       # on any line of the statement
    ("{}(\n        1,\n    )  # race: ok why", True),
    ("{}(1)\n    # race: ok why", False),                   # on the line below it
    ("# race: ok why\n    {}(1)", False),
    ("if y:  # race: ok why\n        {}(1)", False),       # the head of a statement is not its body
    ("match y:  # race: ok why\n        case 1:\n            {}(1)", False),
    ("match {}(1):  # race: ok why\n        case 1:\n            pass", True),
    ("if (y and\n            {}(1)):  # race: ok why\n        pass", True),
]


@pytest.mark.parametrize(("code", "counts"), STATEMENTS)
def test_comment_counts_for_its_statement_in_races_and_in_what_nothing_watches(tmp_path, code, counts):
    sites = rewrite(f"def work(x, y):\n    {code.format('x.size.pop')}\n", "app.py")[1]
    assert {site.note for site in sites if site.key == "size"} == {"why" if counts else None}
    seen, _ = looked_at(tmp_path, f"def work(x, y):\n    {code.format('exec')}")
    assert bool(seen) != counts


def test_comment_counts_for_a_statement_that_no_thread_reached(tmp_path):
    source = "def work():\n    if late():\n        LOG.append(\n            1)  # race: ok at night\n    return 1\n"
    assert looked_at(tmp_path, source, unreached, lines=frozenset({2, 5}))[0] == []
    assert looked_at(tmp_path, source.replace("race: ok", "race:"), unreached, lines=frozenset({2, 5}))[0]


def test_comment_in_a_handler_does_not_reach_into_other_statements():
    source = """
def work(x):
    try:
        y = (1,  # race: ok why
             2)
    except x.size:
        pass
"""
    assert [site.note for site in rewrite(source, "app.py")[1] if site.key == "size"] == [None]
