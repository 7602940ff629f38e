# EXPECT: clean
"""shutdown(wait=False) returns while the task may still run."""

from concurrent.futures import ThreadPoolExecutor

archive = ""


def compress(text):
    global archive
    archive = text[:3]


executor = ThreadPoolExecutor(max_workers=1)
executor.submit(compress, "a long text")
executor.shutdown(wait=True)
size = len(archive)
print(size <= 3)
