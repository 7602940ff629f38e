# EXPECT: clean
"""is_alive() says when the thread has ended, if one asks."""

import threading
import time

report = "none yet"


def write_report():
    global report
    report = "all is well"


writer = threading.Thread(target=write_report)
writer.start()
while writer.is_alive():
    time.sleep(0.001)
length = len(report)
writer.join()
print(report, length > 0)
