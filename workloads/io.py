"""Tasks that wait: sleeping, a file, loopback TCP and HTTP.  Each has a form that awaits instead.

HTTP is fetched with urllib3 (pure Python, so it loads in subinterpreters) and, awaiting, with aiohttp.  Both
install with pip on CPython 3.12 to 3.15 with and without the GIL, and cost less CPU per page than httpx,
which has both forms but would make this a CPU workload.  A file has no awaiting form in asyncio: a thread
does it, as aiofiles would.
"""


async def sleep_async(seconds: float) -> float:
    """Do what `sleep` does, awaiting."""
    import asyncio

    await asyncio.sleep(seconds)
    return seconds


def sleep(seconds: float) -> float:
    """Sleep, and return the requested seconds."""
    import time

    time.sleep(seconds)
    return seconds


def file_write_read(payload: tuple[str, int, int, bool]) -> int:
    """Write files, one after another, and read each back.

    Args:
        payload: Directory, bytes per file, number of files, and whether each is forced to the disk (fsync).

    Returns:
        How many bytes came back as they were written.
    """
    directory, size, files, sync = payload
    return sum(_write_and_read(directory, bytes((index % 256,)) * size, sync) for index in range(files))


async def file_write_read_async(payload: tuple[str, int, int, bool]) -> int:
    """Do what `file_write_read` does, awaiting one file after another."""
    import asyncio

    directory, size, files, sync = payload
    intact = 0
    for index in range(files):
        intact += await asyncio.to_thread(_write_and_read, directory, bytes((index % 256,)) * size, sync)
    return intact


def _write_and_read(directory: str, content: bytes, sync: bool) -> int:  # noqa: FBT001 - a field of the payload
    import os

    name = os.path.join(directory, f"gilscope-{os.urandom(8).hex()}")  # noqa: PTH118 - pathlib is 5 ms of import
    handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # Unlink at once, so that no file remains however this process ends.
        os.unlink(name)  # noqa: PTH108 - likewise
        written = 0
        while written < len(content):
            written += os.write(handle, content[written:])
        if sync:
            os.fsync(handle)
        os.lseek(handle, 0, os.SEEK_SET)
        chunks = []
        while chunk := os.read(handle, 1 << 20):
            chunks.append(chunk)
    finally:
        os.close(handle)
    return len(content) if b"".join(chunks) == content else 0


def tcp_echo(requests: int) -> int:
    """Send messages of 1 to 64 bytes over one connection, each after the reply to the one before.

    Returns:
        How many bytes came back as they were sent.

    Raises:
        RuntimeError: GILSCOPE_ECHO does not say where the service is.
        ConnectionError: It went away.
    """
    import socket

    intact = 0
    with socket.create_connection(_address("GILSCOPE_ECHO"), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for index in range(requests):
            message = _message(index)
            connection.sendall(message)
            reply = connection.recv(len(message))
            while len(reply) < len(message):
                more = connection.recv(len(message) - len(reply))
                if not more:
                    raise ConnectionError(f"the echo service closed after {len(reply)} of {len(message)} bytes")
                reply += more
            intact += len(reply) if reply == message else 0
    return intact


async def tcp_echo_async(requests: int) -> int:
    """Do what `tcp_echo` does, awaiting."""
    import asyncio

    intact = 0
    reader, writer = await asyncio.open_connection(*_address("GILSCOPE_ECHO"))
    try:
        for index in range(requests):
            message = _message(index)
            writer.write(message)
            reply = await reader.readexactly(len(message))
            intact += len(reply) if reply == message else 0
    finally:
        writer.close()
        await writer.wait_closed()
    return intact


def http_fetch(paths: tuple[str, ...]) -> int:
    """Fetch the pages over one kept-alive connection and return the CRC-32 of their bodies, one after another.

    Raises:
        RuntimeError: GILSCOPE_HTTP does not say where the service is, or it refused a page.
    """
    import zlib

    return zlib.crc32(b"".join(fetch(paths)))


async def http_fetch_async(paths: tuple[str, ...]) -> int:
    """Do what `http_fetch` does, awaiting."""
    import zlib

    return zlib.crc32(b"".join(await fetch_async(paths)))


def fetch(paths: tuple[str, ...]) -> list[bytes]:
    """Return the bodies of the pages, fetched one after another over one connection."""
    import urllib3

    host, port = _address("GILSCOPE_HTTP")
    bodies = []
    with urllib3.HTTPConnectionPool(host, port, maxsize=1, timeout=30.0, retries=False) as pool:
        for path in paths:
            response = pool.request("GET", path)
            _refuse(response.status, path)
            bodies.append(response.data)
    return bodies


async def fetch_async(paths: tuple[str, ...]) -> list[bytes]:
    """Do what `fetch` does, awaiting."""
    import aiohttp

    host, port = _address("GILSCOPE_HTTP")
    bodies = []
    async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
        for path in paths:
            async with session.get(path) as response:
                _refuse(response.status, path)
                bodies.append(await response.read())
    return bodies


def _refuse(status: int, path: str) -> None:
    if status != 200:  # HTTP's OK; the enum is an import
        raise RuntimeError(f"the HTTP service answered {status} to {path}")


def _message(index: int) -> bytes:
    return bytes((index % 256,)) * (index % 64 + 1)


def _address(variable: str) -> tuple[str, int]:
    import os

    address = os.environ.get(variable)
    if not address:
        service = variable.removeprefix("GILSCOPE_").lower()
        raise RuntimeError(
            f"{variable} is not set; `python -m gilscope.workloads.servers {service}` prints what it must be")
    host, _, port = address.rpartition(":")
    return host, int(port)
