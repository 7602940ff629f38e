"""README's picture shows the stored results."""

import zlib

import pytest

from tests.benchmarks.site_picture import PICTURE, digest_in, results_digest, with_digest

pytestmark = pytest.mark.newest


def test_picture_in_readme_shows_the_stored_results():
    assert digest_in(PICTURE.read_bytes()) == results_digest(), (
        "docs/figures/site.png was taken of other results: python -m tests.benchmarks.site_picture takes it again")


def test_digest_depends_on_names_and_contents(tmp_path):
    def after(name, text):
        (tmp_path / name).write_text(text)
        return results_digest(tmp_path)

    digests = [after("a.json", "{}"), after("a.json", "{} "), after("b.json", "{}")]
    assert len(set(digests)) == 3
    assert after("report.md", "# not a result") == digests[-1]


def test_digest_is_read_from_the_picture_that_it_was_put_into():
    picture = PICTURE.read_bytes()
    changed = with_digest(picture.replace(b"gilscope-results", b"gilscope-earlier"), "0123")
    assert digest_in(changed) == "0123"
    place = changed.index(b"tEXtgilscope-results")
    assert zlib.crc32(changed[place:place + 4 + 17 + 4]) == int.from_bytes(changed[place + 25:place + 29], "big")
    assert changed[-8:-4] == b"IEND"
