# EXPECT: torn multi-step write or unsynchronised read/write | Config.host | 22, 26
# EXPECT: torn multi-step write or unsynchronised read/write | Config.port | 23, 26
"""Configuration which a background thread reloads while clients use it."""
import json
import threading

VERSIONS = [
    '{"host": "db1", "port": 5001}',
    '{"host": "db2", "port": 5002}',
    '{"host": "db3", "port": 5003}',
]


class Config:
    def __init__(self, text):
        values = json.loads(text)
        self.host = values["host"]
        self.port = values["port"]

    def reload(self, text):
        values = json.loads(text)
        self.host = values["host"]
        self.port = values["port"]

    def address(self):
        return "%s:%d" % (self.host, self.port)


class Client:
    def __init__(self, config):
        self.config = config
        self.connected = []

    def connect(self, times):
        for _ in range(times):
            self.connected.append(self.config.address())


class Reloader:
    def __init__(self, config, versions):
        self.config = config
        self.versions = versions

    def run(self):
        for text in self.versions:
            self.config.reload(text)


def main():
    config = Config(VERSIONS[0])
    client = Client(config)
    reloader = Reloader(config, VERSIONS[1:])
    threads = [
        threading.Thread(target=client.connect, args=(10,)),
        threading.Thread(target=reloader.run),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(len(client.connected), config.address())


main()
