# EXPECT: lost update | global transcript in racy.py | 12, 12
"""Text glued together with += from two speakers."""

import threading

transcript = ""


def speak(name, words):
    global transcript
    for word in words:
        transcript += f"{name}: {word}\n"


ann = threading.Thread(target=speak, args=("ann", ["hello", "there"]))
ben = threading.Thread(target=speak, args=("ben", ["good", "day"]))
ann.start()
ben.start()
ann.join()
ben.join()
print(len(transcript) > 0)
