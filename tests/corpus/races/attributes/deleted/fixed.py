# EXPECT: clean
"""An attribute deleted while another thread may still use it."""

import threading


class Upload:
    def __init__(self):
        self.token = "secret"
        self.lock = threading.Lock()

    def revoke(self):
        with self.lock:
            del self.token

    def describe(self):
        with self.lock:
            if hasattr(self, "token"):
                return f"token of {len(self.token)} letters"
            return "no token"


upload = Upload()
said = []
threads = [
    threading.Thread(target=upload.revoke),
    threading.Thread(target=lambda: said.append(upload.describe())),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("described", len(said))
