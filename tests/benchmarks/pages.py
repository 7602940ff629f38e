"""How soon pages show something, and how long they keep a reader waiting: `python -m tests.benchmarks.pages FILE...`.

Each page is opened from disk in a fresh headless Chromium, as often as --rounds says; medians are printed.  A task is
long from 50 ms on, as browsers count.  Without FILE: the pages of single reports, of made-up findings.
"""

import argparse
import tempfile
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.site.browser.opened import launched
from tests.site.pages import PAGES

# Before the page's own script: what the browser tells of it.
WATCH = """
window.tasks = [];
new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(each => each.duration)))
    .observe({type: "longtask", buffered: true});
window.painted = new Promise(done => new PerformanceObserver(list => {
    for (const each of list.getEntriesByName("first-contentful-paint")) done(each.startTime);
}).observe({type: "paint", buffered: true}));
"""
TOLD = """async () => ({
    paint: await window.painted, tasks: window.tasks,
    whole: performance.timing.loadEventEnd - performance.timing.navigationStart})"""


def timings(browser, file):
    """Return milliseconds until something showed and until all was there, and the long tasks'."""
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(file.as_uri(), wait_until="load")
    found = page.evaluate(TOLD)
    context.close()
    return found["paint"], found["whole"], found["tasks"]


@contextmanager
def made_up():
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, make in PAGES.items():
            files.append(Path(folder, f"{name}.html"))
            files[-1].write_text(make(), encoding="utf-8")
        yield files


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with launched() as browser, made_up() as ours:
        print(f"{'page':<40}{'size':>10}{'first paint':>13}{'all':>9}{'long tasks':>12}{'longest':>9}")
        for file in args.files or ours:
            found = [timings(browser, file.resolve()) for _ in range(args.rounds)]
            paint, whole = (median(each[i] for each in found) for i in (0, 1))
            tasks = [len(each[2]) for each in found]
            longest = max((task for each in found for task in each[2]), default=0)
            print(f"{file.name:<40}{file.stat().st_size / 1000:>7,.0f} kB{paint:>10,.0f} ms{whole:>6,.0f} ms"
                  f"{median(tasks):>12g}{longest:>6,.0f} ms")


if __name__ == "__main__":
    main()
