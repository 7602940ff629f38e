"""The sequence number of the journal is kept in a file, so that it survives a restart."""
import os
import tempfile
import threading

PATH = os.environ.get("JOURNAL_FILE", os.path.join(tempfile.gettempdir(), f"journal-{os.getuid()}.seq"))
_lock = threading.Lock()


def digest(n):
    return sum(i * i % 19 for i in range(n))


def entry(size):
    digest(size)
    with _lock:
        try:
            with open(PATH) as file:
                number = int(file.read() or 0)
        except FileNotFoundError:
            number = 0
        with open(PATH, "w") as file:
            file.write(str(number + 1))
    return number + 1
