# EXPECT: lost update | global bytes_sent in racy.py | 12, 12
"""A traffic counter, written out as x = x + n."""

import threading

bytes_sent = 0


def send(packets):
    global bytes_sent
    for packet in packets:
        bytes_sent = bytes_sent + len(packet)


senders = [threading.Thread(target=send, args=([b"x" * n for n in range(20)],)) for _ in range(2)]
for sender in senders:
    sender.start()
for sender in senders:
    sender.join()
print("sent something:", bytes_sent > 0)
