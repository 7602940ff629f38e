# EXPECT: unsynchronised read/write or check-then-act | Upload.token | 12, 15, 16
"""An attribute deleted while another thread may still use it."""

import threading


class Upload:
    def __init__(self):
        self.token = "secret"

    def revoke(self):
        del self.token

    def describe(self):
        if hasattr(self, "token"):
            return f"token of {len(getattr(self, 'token', ''))} letters"
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
