# EXPECT: clean
import threading

lock = threading.Lock()
totals = {"ok": 0, "bad": 0}
largest = None


def parse(texts):
    global largest
    for text in texts:
        lock.acquire()
        try:
            value = int(text)
            totals["ok"] += 1
            if largest is None or value > largest:
                largest = value
        except ValueError:
            totals["bad"] += 1
        finally:
            lock.release()


texts = [["1", "x", "30"], ["y", "7", "z"], ["12"]]
threads = [threading.Thread(target=parse, args=(part,)) for part in texts]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(totals, largest)
