# EXPECT: unsynchronised read/write or torn multi-step write | global scratch in racy.py | 9, 10, 11
"""A global used as scratch space and deleted afterwards."""

import threading


def digits(number, out):
    global scratch
    scratch = str(number)
    out.append(len(scratch))
    del scratch


def measure(numbers, out):
    for number in numbers:
        try:
            digits(number, out)
        except NameError:
            out.append(0)


lengths = [[], []]
threads = [threading.Thread(target=measure, args=([1, 10, 100], out)) for out in lengths]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([len(out) for out in lengths])
