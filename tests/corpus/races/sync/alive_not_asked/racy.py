# EXPECT: unsynchronised read/write | global report in racy.py | 11, 16
"""is_alive() says when the thread has ended, if one asks."""

import threading

report = "none yet"


def write_report():
    global report
    report = "all is well"


writer = threading.Thread(target=write_report)
writer.start()
length = len(report)
writer.join()
print(report, length > 0)
