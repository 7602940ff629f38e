"""Each workload alone: its task, its check, what it costs to import, and the services it talks to."""

import asyncio
import importlib.util
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from gilscope.workloads import checks, contention, cpu, server_pages, servers
from gilscope.workloads.base import SIZES, Workload, WrongResult
from gilscope.workloads.catalog import REPRESENTATIVE, WORKLOADS, find
from gilscope.workloads.io import file_write_read, tcp_echo
from gilscope.workloads.payloads import HUGE_TASKS, task_count
from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent
SHARED = {"counter": contention.Counter, "dict": dict, "list": list, "object": contention.Box}
TASK_MODULES = ("cpu", "native", "io", "mixed", "contention", "transfer")



def each_of(workloads):
    return pytest.mark.parametrize("workload", workloads, ids=lambda workload: workload.name)


each_workload = each_of(WORKLOADS)


@contextmanager
def server(*arguments: str):
    """Start a service and yield its process and address; leave no process."""
    with subprocess.Popen([sys.executable, "-m", "gilscope.workloads.servers", *arguments], cwd=ROOT, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture(scope="module", autouse=True)
def services():
    """The two services, without latency, where tasks look for them."""
    with (server("echo") as (_, echo), server("http", "--latency", "0ms") as (_, http),
          pytest.MonkeyPatch.context() as patch):
        patch.setenv("GILSCOPE_ECHO", echo)
        patch.setenv("GILSCOPE_HTTP", http)
        yield


def needs(modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed here")


def run_serially(workload: Workload) -> list:
    needs(workload.requires)
    return list(_run_once(workload))


@cache
def _run_once(workload: Workload) -> tuple:
    rest = () if workload.shared is None else (SHARED[workload.shared](),)
    return tuple(workload.task(payload, *rest) for payload in workload.payloads("small"))


def corrupt(result):
    """Return what the same task might give if it went slightly wrong."""
    match result:
        case int() | float():
            return result + 1
        case str():
            return result[:-1] + ("0" if result[-1] != "0" else "1")
        case tuple():
            return (*result[:-1], corrupt(result[-1]))
        case dict():
            return {**result, "": 1}
    raise AssertionError(f"no corruption for {result!r}")


# --- the catalog

def test_names_are_unique_and_found():
    assert len({workload.name for workload in WORKLOADS}) == len(WORKLOADS)
    assert all(find(workload.name) is workload for workload in WORKLOADS)
    with pytest.raises(KeyError):
        find("no such workload")


def test_representative_names_one_workload_of_each_kind():
    kinds = {workload.kind for workload in WORKLOADS}
    assert {find(name).kind for name in REPRESENTATIVE} == kinds
    assert len(REPRESENTATIVE) == len(kinds)


@each_workload
def test_twins_name_each_other_and_are_of_one_kind(workload):
    if workload.twin is not None:
        twin = find(workload.twin)
        assert twin.twin == workload.name
        assert twin.task is workload.task
        assert twin.kind == workload.kind


@each_workload
def test_workers_can_import_the_task_by_name(workload):
    for task in filter(None, (workload.task, workload.async_task)):
        assert pickle.loads(pickle.dumps(task)) is task


def test_importing_the_catalog_leaves_what_tasks_import_alone():
    loaded = modules_after("import gilscope.workloads.catalog")
    assert loaded.isdisjoint({"numpy", "urllib3", "aiohttp", "asyncio", "json", "hashlib", "tempfile", "socket"})


@pytest.mark.parametrize("module", TASK_MODULES)
def test_importing_a_task_module_imports_nothing_else(module):
    added = modules_after(f"import gilscope.workloads.{module}") - modules_after("pass")
    assert added == {"gilscope", "gilscope.workloads", f"gilscope.workloads.{module}"}


def modules_after(statement: str) -> set[str]:
    # -S: site may import anything for .pth files of the environment the tests run in.
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


# --- payloads

@each_workload
def test_payloads_survive_pickling(workload):
    for payload in workload.payloads("small")[:4]:
        assert pickle.loads(pickle.dumps(payload, 5)) == payload


@each_of([workload for workload in WORKLOADS if workload.kind != "transfer"])   # which has gigabytes of payloads
def test_larger_sizes_have_more_tasks(workload):
    small, medium, large = (len(workload.payloads(size)) for size in SIZES)
    assert small < medium < large


@pytest.mark.parametrize(("size", "workers", "tasks"), [
    ("small", 1, 4), ("small", 4, 4), ("small", 5, 8), ("small", 64, 64), ("medium", 16, 16), ("medium", 17, 32),
])
def test_there_is_a_task_for_each_worker_of_the_widest_cell(size, workers, tasks):
    assert len(find("sleep").payloads(size, workers)) == tasks
    assert len(find("primes").payloads(size, workers)) == tasks
    assert task_count(size, workers, HUGE_TASKS) == HUGE_TASKS[size]   # more of them would not fit into memory


@pytest.mark.parametrize("name", ["primes", "fetch_parse", "countdown", "shared_counter", "nbody"])
def test_check_expects_the_results_of_as_many_tasks(name):
    workload = find(name)
    with pytest.raises(WrongResult, match="expected 12 results, got 4"):
        workload.check("small", [0] * 4, 9)


def test_more_primes_are_those_of_further_ranges():
    workload = find("primes")
    workload.check("small", list(map(workload.task, workload.payloads("small", 5))), 5)


@pytest.mark.parametrize("name", ["bytes_1k", "bytes_1m", "buffer_8m", "list_1e6_ints", "nested_dict"])
def test_no_two_transfers_hand_over_one_object(name):
    handed = find(name).payloads("small")[:3]
    assert len({id(payload) for payload in handed}) == len(handed)


@pytest.mark.parametrize("name", ["sha256_64b", "sha256_64k", "sha256_4m"])
def test_messages_are_one_object_and_in_the_twin_one_each(name):
    shared, own = find(name).payloads("small"), find(f"{name}_copies").payloads("small")
    assert len({id(message) for message, _ in shared}) == 1
    assert len({id(message) for message, _ in own}) == len(own)
    assert shared == own


@each_of([workload for workload in WORKLOADS if workload.units])
def test_more_units_are_a_larger_payload_and_a_repeatable_result(workload):
    needs(workload.requires)
    assert workload.units(1) != workload.units(50)
    rest = () if workload.shared is None else (SHARED[workload.shared](),)
    assert workload.task(workload.units(50), *rest) == workload.task(workload.units(50))


# --- results

@each_workload
def test_serial_run_passes_the_check(workload):
    workload.check("small", run_serially(workload))


@each_workload
def test_corrupted_results_are_refused(workload):
    results = run_serially(workload)
    # The counter's tasks see each other's additions: the last one must have seen them all.
    for position in (-1,) if workload.name == "shared_counter" else (0, -1):
        wrong = list(results)
        wrong[position] = corrupt(wrong[position])
        with pytest.raises(WrongResult, match=r"expected .*got "):
            workload.check("small", wrong)


@each_workload
def test_missing_and_surplus_results_are_refused(workload):
    results = run_serially(workload)
    for wrong in (results[:-1], [*results, results[-1]], []):
        with pytest.raises(WrongResult, match=r"expected .*results, got "):
            workload.check("small", wrong)


@each_workload
def test_results_of_another_type_are_refused(workload):
    results = run_serially(workload)
    with pytest.raises(WrongResult):
        workload.check("small", [None] * len(results))


@each_of([workload for workload in WORKLOADS if workload.async_task])
def test_async_form_gives_the_same_results(workload):
    needs(workload.async_requires)

    async def together():
        return await asyncio.gather(*map(workload.async_task, workload.payloads("small")))

    workload.check("small", asyncio.run(together()))


@pytest.mark.parametrize("name", ["sleep", "file_write_read", "tcp_echo", "http_fetch", "fetch_parse"])
def test_async_form_lets_others_run(name):
    workload = find(name)
    needs(workload.async_requires)

    async def beside():
        turns = 0
        task = asyncio.create_task(workload.async_task(workload.payloads("small")[0]))
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        await task
        return turns

    assert asyncio.run(beside()) > 1   # one that never awaits is done at the loop's first turn


@pytest.mark.parametrize("name", [workload.name for workload in WORKLOADS if workload.kind == "contention"])
def test_contention_is_right_with_threads_at_once(name):
    workload = find(name)
    rest = () if workload.shared is None else (SHARED[workload.shared](),)
    handed = workload.payloads("small")
    together = threading.Barrier(len(handed), timeout=PATIENCE)

    def run(payload):
        together.wait()
        return workload.task(payload, *rest)

    with ThreadPoolExecutor(len(handed)) as executor:
        for _ in range(2):  # the second run finds what the first left in the shared thing
            workload.check("small", list(executor.map(run, handed)))
    if workload.shared in {"dict", "list"}:
        assert not rest[0]


def test_lost_update_of_the_shared_counter_is_refused():
    per_task = checks.amount_for("small", 160_000)
    # Four tasks one after another, the third one starting 5 short of where the second ended.
    starts = [0, per_task, 2 * per_task - 5, 3 * per_task - 5]
    with pytest.raises(WrongResult, match="additions to the shared counter"):
        find("shared_counter").check("small", [(start, start + per_task) for start in starts])


# --- the sources of expected values

def test_prime_count_of_the_first_million():
    assert cpu.primes((0, 10_000)) == 1229   # pi(10**4), OEIS A006880
    assert checks._primes_between(2, 10**6) == 78498


def test_energy_as_the_benchmarks_game_prints_it():
    assert f"{cpu.nbody(0):.9f}" == "-0.169075164"
    assert f"{cpu.nbody(1000):.9f}" == "-0.169087605"


@pytest.mark.parametrize("points", checks.BOUNDED)
def test_bounded_points_stand_for_the_area_of_the_mandelbrot_set(points):
    # Half of the set lies in the 2.5 x 1.25 searched; 1.5065918849 is its area (Foerstemann 2012).
    # 100 steps leave some points outside undecided: never less, at most 5 % more.
    area = checks.BOUNDED[points] / points * 2.5 * 1.25 * 2
    assert 1.5066 < area < 1.5066 * 1.05


def test_sorting_ends_in_order():
    assert checks.sorted_sum(2) == 2 * sum(rank * rank for rank in range(127)) == cpu.sort(2)


# --- files

def test_files_are_removed_even_when_writing_fails(tmp_path, monkeypatch):
    assert file_write_read((str(tmp_path), 1000, 3, True)) == 3000
    monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        file_write_read((str(tmp_path), 1000, 3, False))
    assert list(tmp_path.iterdir()) == []


# --- services

@pytest.mark.parametrize("service", ["echo", "http"])
def test_service_ends_with_its_input(service):
    with server(service) as (process, address):
        assert address.startswith("127.0.0.1:")
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""
        refuses_connections(address)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("service", ["echo", "http"])
def test_service_ends_when_told_even_with_a_client_connected(service, number):
    with server(service) as (process, address):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE):
            process.send_signal(number)
            assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""


def test_service_dies_with_the_process_that_started_it():
    code = ("import subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-m', 'gilscope.workloads.servers', 'echo'], text=True,\n"
            "                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
            "print(child.stdout.readline(), end='', flush=True)\n"
            "time.sleep(600)\n")
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, text=True, stdout=subprocess.PIPE) as parent:
        host, _, port = parent.stdout.readline().strip().rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            parent.kill()
            # The end of the connection is the end of the server; one that it had not yet accepted is reset.
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""


def refuses_connections(address):
    host, _, port = address.rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=PATIENCE)


def test_echo_answers_in_order_after_its_latency(monkeypatch):
    with server("echo", "--latency", "1ms") as (_, address):
        monkeypatch.setenv("GILSCOPE_ECHO", address)
        assert tcp_echo(10) == sum(range(1, 11))


def test_http_serves_many_requests_on_one_connection_and_then_closes():
    with http_connection() as stream:
        for number in (1, 2):
            stream.write(f"GET /page/{number}?words=20 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            stream.flush()
            assert read_response(stream) == (200, server_pages.page(number, 20))
        stream.write(b"GET /page/3 HTTP/1.1\r\nConnection: close\r\n\r\n")
        stream.flush()
        assert read_response(stream) == (200, server_pages.page(3, 150))
        assert stream.read(1) == b""


def test_http_answers_pipelined_and_split_requests():
    with http_connection() as stream:
        for part in (b"GET /page/1 HTTP/1.1\r\n\r\nGET /pa", b"ge/2 HTTP/1.1\r\n\r", b"\n"):
            stream.write(part)
            stream.flush()
        assert [read_response(stream)[1] for _ in range(2)] == [server_pages.page(1, 150), server_pages.page(2, 150)]


@pytest.mark.parametrize(("request_line", "status"), [
    ("GET / HTTP/1.1", 404), ("GET /page/x HTTP/1.1", 404), ("GET /page/1?words=-1 HTTP/1.1", 404),
    ("GET /page/1?words=99999999 HTTP/1.1", 404), ("POST /page/1 HTTP/1.1", 405), ("nonsense", 400),
])
def test_http_refuses_what_it_does_not_have(request_line, status):
    with http_connection() as stream:
        stream.write(f"{request_line}\r\n\r\n".encode())
        stream.flush()
        assert read_response(stream) == (status, b"")


@contextmanager
def http_connection():
    host, _, port = os.environ["GILSCOPE_HTTP"].rpartition(":")
    with (socket.create_connection((host, int(port)), timeout=PATIENCE) as connection,
          connection.makefile("rwb") as stream):
        yield stream


def read_response(stream) -> tuple[int, bytes]:
    status = int(stream.readline().split()[1])
    length = 0
    while (line := stream.readline()) not in {b"\r\n", b""}:
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, stream.read(length)


def test_unset_address_says_how_to_get_one(monkeypatch):
    monkeypatch.delenv("GILSCOPE_ECHO")
    with pytest.raises(RuntimeError, match=r"python -m gilscope\.workloads\.servers echo"):
        tcp_echo(1)


@pytest.mark.parametrize("text", ["", "ms", "-1ms", "61s", "nan", "5 minutes"])
def test_bad_latency_is_refused(text):
    with pytest.raises(servers.argparse.ArgumentTypeError, match="not a latency"):
        servers._latency(text)


def test_latency_is_read_in_milliseconds_or_seconds():
    assert [servers._latency(text) for text in ("5ms", "0.25s", "2")] == [0.005, 0.25, 2.0]
