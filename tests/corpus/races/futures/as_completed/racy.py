# EXPECT: unsynchronised read/write | Page.size | 14, 21
"""Pages are looked at before they are complete."""

from concurrent.futures import ThreadPoolExecutor, as_completed


class Page:
    def __init__(self, text):
        self.text = text
        self.size = -1


def measure(page):
    page.size = len(page.text)
    return page


pages = [Page("short"), Page("a longer one")]
with ThreadPoolExecutor() as executor:
    futures = [executor.submit(measure, page) for page in pages]
    sizes = [page.size for page in pages]
    done = [future.result() for future in as_completed(futures)]
print(len(sizes), len(done))
