"""What tests send to interpreters."""

import gc
import os
import threading
import time


def square(number):
    return number * number


def add(one, other=10):
    return one + other


def fail_at(number, bad):
    if number == bad:
        raise LookupError(number)
    return number


def note(path, number):
    """Append a line: who reads the file knows how often each task ran."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{number}\n".encode())
    os.close(fd)
    return number


def note_or_fail(path, number):
    note(path, number)
    if number % 7 == 3:
        raise LookupError(number)
    return number


def wait_for(fd):
    """Wait until somebody writes into a pipe, or closes it."""
    return os.read(fd, 1)


def wait_and_fail(fd):
    raise LookupError(os.read(fd, 1))


def say_and_wait(said, fd):
    os.write(said, b"x")
    return os.read(fd, 1)


def nap_after(number, first):
    """Return at once, or after a millisecond from `first` on: what was learnt of it is wrong then."""
    if number >= first:
        time.sleep(0.001)
    return number


def total(view):
    """Return what came, and its sum."""
    return type(view).__name__, view.readonly, view.format, sum(view)


def total_of_all(views):
    """Return the sum of two buffers in a list and a dictionary."""
    first, others = views
    return sum(first) + sum(sum(each) for each in others.values())


def refuse_views(view):
    raise ValueError(f"no {type(view).__name__}, please")


class Bomb:
    """An object whose unpickling fails, or gives []."""

    def __init__(self, armed):
        self.armed = armed

    def __reduce__(self):
        return (go_off, ()) if self.armed else (list, ())


class CollectsGarbage:
    """An argument that has garbage collected while it is pickled."""

    def __init__(self, number):
        self.number = number

    def __reduce__(self):
        gc.collect()
        return bytes, (self.number,)


def go_off():
    raise RuntimeError("it goes off")


def needs_readline():
    """Import a module that does not load in interpreters."""
    import readline

    return readline.__name__


def size_of(data):
    return len(data)


def many_bytes(count):
    return b"x" * count


def spoil_replies(_=None):
    """Make the loop of this worker end when it answers."""
    from gilscope.runners import _worker

    def refuse(*_):
        raise RuntimeError("no reply from here")

    _worker.dumps = refuse


def set_up(value):
    prepared.append(value)


def get_prepared():
    return prepared[0]


def refuse_to_start():
    raise RuntimeError("not today")


def leave_by_exit():
    raise SystemExit(5)


def return_lock():
    return threading.Lock()


def dig(depth):
    return depth and 1 + dig(depth - 1)


class Event:
    """A threading.Event over a pipe, which every interpreter of the process can wait for."""

    def __init__(self):
        self.reading, self.writing = os.pipe()

    def set(self):
        os.write(self.writing, b"x")

    def is_set(self):
        return self.wait(0)

    def wait(self, seconds=None):
        import select  # not in every task's interpreter

        return bool(select.select([self.reading], [], [], seconds)[0])


prepared = []
