"""The picture in README: the first page of the site that README's command makes, in a browser of 1280 pixels.

    python -m tests.benchmarks.site_picture
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance.builds import ROOT
from tests.site.browser.opened import launched

PICTURE = ROOT / "docs" / "figures" / "site.png"
WIDTH, HEIGHT = 1280, 965   # pixels


def main() -> None:
    """Make the site, open its first page, and keep what is seen of it."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        subprocess.run([sys.executable, "-m", "gilscope", "site", "results/example", "--out", str(site)], cwd=ROOT,
                       check=True)
        with launched() as browser:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.goto((site / "index.html").as_uri())
            page.screenshot(path=str(PICTURE))


if __name__ == "__main__":
    main()
