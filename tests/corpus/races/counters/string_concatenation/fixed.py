# EXPECT: clean
"""Text glued together with += from two speakers."""

import threading

transcript = []


def speak(name, words):
    for word in words:
        transcript.append(f"{name}: {word}\n")


ann = threading.Thread(target=speak, args=("ann", ["hello", "there"]))
ben = threading.Thread(target=speak, args=("ben", ["good", "day"]))
ann.start()
ben.start()
ann.join()
ben.join()
print(len("".join(transcript)) > 0)
