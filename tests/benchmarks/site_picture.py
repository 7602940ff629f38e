"""The picture in README: the first page of the site that README's command makes, in a browser of 1280 pixels.

    python -m tests.benchmarks.site_picture

The picture holds a digest of the results that it shows, so that a fast test detects a stale picture.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from tests.conformance.builds import ROOT
from tests.site.browser.opened import launched

PICTURE = ROOT / "docs" / "figures" / "site.png"
RESULTS = ROOT / "results" / "example"
WIDTH, HEIGHT = 1280, 1048   # pixels
SIGNATURE, LAST = b"\x89PNG\r\n\x1a\n", b"IEND"
KEYWORD = b"gilscope-results"   # of the chunk with the digest


def results_digest(folder: Path = RESULTS) -> str:
    """Return a digest of all stored results below a folder, by their names and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.json")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def with_digest(picture: bytes, digest: str) -> bytes:
    """Return a PNG file with a text chunk that holds the digest, before its last chunk."""
    body = b"tEXt" + KEYWORD + b"\0" + digest.encode("ascii")
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    end = picture.rindex(LAST) - 4
    return picture[:end] + chunk + picture[end:]


def digest_in(picture: bytes) -> str | None:
    """Return the digest that a PNG file holds, or None."""
    place = len(SIGNATURE)
    while place < len(picture):
        length = int.from_bytes(picture[place:place + 4], "big")
        kind, text = picture[place + 4:place + 8], picture[place + 8:place + 8 + length]
        if kind == b"tEXt" and text.startswith(KEYWORD + b"\0"):
            return text[len(KEYWORD) + 1:].decode("ascii")
        place += 12 + length   # with length, kind and checksum
    return None


def main() -> None:
    """Make the site, open its first page, and save a screenshot."""
    digest = results_digest()   # before the site is made: what changes meanwhile is not in the picture
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        subprocess.run([sys.executable, "-m", "gilscope", "site", "results/example", "--out", str(site)], cwd=ROOT,
                       check=True)
        with launched() as browser:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.goto((site / "index.html").as_uri())
            PICTURE.write_bytes(with_digest(page.screenshot(), digest))


if __name__ == "__main__":
    main()
