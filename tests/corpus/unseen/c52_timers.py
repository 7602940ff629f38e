# EXPECT: clean
import threading


class Alarm:
    def __init__(self, delay, text):
        self.rung = 0
        self.text = text
        self.timer = threading.Timer(delay, self.ring, kwargs={"times": 2})

    def ring(self, times):
        for _ in range(times):
            self.rung += 1

    def set(self):
        self.rung = 0
        self.timer.start()
        return self

    def stop(self):
        self.timer.join()
        self.rung *= 10
        return self.text, self.rung


alarms = [Alarm(0.003 * n, f"alarm {n}").set() for n in range(3)]
never = Alarm(60, "never").set()
never.timer.cancel()
print([alarm.stop() for alarm in alarms], never.stop())
