"""A thread that is stopped in the middle of its work, in a process of its own."""

import json
import sys
import textwrap

from tests.conformance.builds import run_child
from tests.patience import PATIENCE


def program(text):
    done = run_child(sys.executable, "-c", textwrap.dedent(text), timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_thread_is_stopped_until_the_pipe_is_emptied():
    same, went_on = program("""
        import json, random, signal, threading
        from pathlib import Path
        from gilscope.toolkit.hammer.stalls import NUMBER, StallPipe, Staller

        pipe = StallPipe()
        staller = Staller(pipe, random.Random(1))
        count, ids, stop = [0], [], []

        def work():
            staller.enter()
            ids.append((threading.get_native_id(), threading.get_ident()))
            while not stop:
                count[0] += 1
            staller.leave()

        thread = threading.Thread(target=work)
        thread.start()
        while not ids or count[0] < 1000:
            pass
        native, ident = ids[0]
        # A loop that computes never waits: it does in the handler alone, or for the GIL, which nobody has.
        signal.pthread_kill(ident, NUMBER)
        state = Path(f"/proc/self/task/{native}/syscall")
        while not state.read_text().startswith("1 "):   # write(2)
            pass
        before = count[0]
        for _ in range(10**6):
            pass
        same = count[0] == before
        pipe.release()
        while count[0] == before:
            pass
        stop.append(True)
        thread.join()
        staller.close()
        pipe.close()
        print(json.dumps([same, count[0] > before]))
    """)
    assert (same, went_on) == (True, True)
