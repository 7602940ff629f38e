# EXPECT: iteration during change | *members* | 22, 25
"""Chat room: one thread lets people in, one broadcasts."""
import threading
from collections import deque


class Member:
    def __init__(self, nick):
        self.nick = nick
        self.inbox = deque(maxlen=50)

    def deliver(self, text):
        self.inbox.append(text)


class Room:
    def __init__(self, name):
        self.name = name
        self.members = set()

    def enter(self, member):
        self.members.add(member)

    def broadcast(self, text):
        for member in self.members:
            member.deliver(text)


class Doorman:
    def __init__(self, room):
        self.room = room

    def admit_all(self, nicks):
        for nick in nicks:
            self.room.enter(Member(nick))


def announcer(room, count):
    for n in range(count):
        try:
            room.broadcast("news %d" % n)
        except RuntimeError:
            continue


def main():
    room = Room("lobby")
    room.enter(Member("bot"))
    doorman = Doorman(room)
    nicks = ["guest%d" % n for n in range(20)]
    threads = [
        threading.Thread(target=doorman.admit_all, args=(nicks,), name="door"),
        threading.Thread(target=announcer, args=(room, 20), name="news"),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(room.name, len(room.members))


if __name__ == "__main__":
    main()
