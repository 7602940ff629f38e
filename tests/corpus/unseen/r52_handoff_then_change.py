# EXPECT: unsynchronised read/write | *state* | 15, 25
import queue
import threading


class Parcel:
    def __init__(self, number):
        self.number = number
        self.state = "packed"


def courier(inbox, stops, delivered):
    for _ in range(stops):
        parcel = inbox.get()
        label = (parcel.number, parcel.state)
        delivered.append(label[0])


inbox = queue.Queue()
delivered = []
thread = threading.Thread(target=courier, args=(inbox, 1, delivered))
thread.start()
parcel = Parcel(7)
inbox.put(parcel)
parcel.state = "insured"
thread.join()
print(delivered, parcel.state)
