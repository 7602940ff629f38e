# EXPECT: unsynchronised read/write | global archive in racy.py | 11, 17
"""shutdown(wait=False) returns while the task may still run."""

from concurrent.futures import ThreadPoolExecutor

archive = ""


def compress(text):
    global archive
    archive = text[:3]


executor = ThreadPoolExecutor(max_workers=1)
executor.submit(compress, "a long text")
executor.shutdown(wait=False)
size = len(archive)
executor.shutdown(wait=True)
print(size <= 3)
