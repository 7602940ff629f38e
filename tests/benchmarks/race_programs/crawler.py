"""A crawler with four workers over a small site that this process serves on the loopback interface."""

import http.client
import threading
from collections import deque
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = 240


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self):
        number = int(self.path.rpartition("/")[2] or 0)
        links = "".join(f'<li><a href="/page/{link}">page {link}</a></li>' for link in linked_from(number))
        words = " ".join(f"word{number * factor % 97}" for factor in range(150))
        body = f"<html><title>{number}</title><p>{words}</p><ul>{links}</ul></html>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def linked_from(number):
    return sorted({(number * 3 + 1) % PAGES, (number * 5 + 2) % PAGES, (number + 1) % PAGES})


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links = []
        self.words = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_data(self, data):
        self.words += len(data.split())


class Frontier:
    """Addresses still to fetch; ends when none is left and no worker is at work."""

    def __init__(self, first):
        self.waiting = deque([first])
        self.known = {first}
        self.busy = 0
        self.changed = threading.Condition()

    def take(self):
        with self.changed:
            while not self.waiting:
                if self.busy == 0:
                    self.changed.notify_all()
                    return None
                self.changed.wait()
            self.busy += 1
            return self.waiting.popleft()

    def done(self, links):
        with self.changed:
            for link in links:
                if link not in self.known:
                    self.known.add(link)
                    self.waiting.append(link)
            self.busy -= 1
            self.changed.notify_all()


def crawl(port, frontier, sizes):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while (address := frontier.take()) is not None:
        connection.request("GET", address)
        page = Page(connection.getresponse().read().decode())
        sizes[address] = page.words
        frontier.done(page.links)
    connection.close()


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="server")
    serving.start()
    frontier, sizes = Frontier("/page/0"), {}
    workers = [
        threading.Thread(target=crawl, args=(server.server_port, frontier, sizes), name=f"crawler-{number}")
        for number in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    server.shutdown()
    serving.join()
    server.server_close()
    print("checksum", len(sizes), sum(sizes.values()), sorted(sizes)[-1])


if __name__ == "__main__":
    main()
