"""Tasks that spend their time in C code without the GIL: SHA-256, zlib, NumPy.

hashlib drops it from 2048 bytes on only, so the 64-byte cell keeps it.  NumPy does not load in
subinterpreters.
"""


def sha256(payload: tuple[bytes, int]) -> str:
    """Hash the bytes the given number of times, at least once, and return the digest in hexadecimal."""
    import hashlib

    message, times = payload
    digest = hashlib.sha256(message)
    for _ in range(times - 1):
        digest = hashlib.sha256(message)
    return digest.hexdigest()


def zlib_compress(payload: tuple[bytes, int]) -> int:
    """Compress the bytes the given number of times, at least once; return the CRC-32 of the last result, decompressed.

    The compressed bytes differ between zlib and its replacements; the decompressed ones do not.
    """
    import zlib

    text, times = payload
    packed = zlib.compress(text, 6)
    for _ in range(times - 1):
        packed = zlib.compress(text, 6)
    return zlib.crc32(zlib.decompress(packed))


def numpy_ufunc(passes: int) -> int:
    """Add, multiply and take roots over 16384 float64 `passes` times; return the sum of the last pass.

    Every value is a whole number below 2**26, so each step is exact, whatever vector code NumPy chose.
    """
    import numpy as np

    values: np.ndarray = np.arange(16384, dtype=np.float64)
    roots = np.zeros_like(values)
    for _ in range(passes):
        np.add(values, 1.0, out=values)
        np.multiply(values, values, out=roots)
        np.sqrt(roots, out=roots)
    return int(roots.sum())


def numpy_matmul(products: int) -> int:
    """Multiply two pairs of 64 x 64 float64 matrices `products` times; return the sum over the last products.

    OpenBLAS uses threads of its own above 64 * 64 * 64 multiplications (65536 * GEMM_MULTITHREAD_THRESHOLD, 4
    by default), and a limit on them would hold for the whole process.  At this size it stays in the calling
    thread, so the workers measured here are the only ones.  Entries are small whole numbers: the sum is exact
    in any order.
    """
    import numpy as np

    entries = np.arange(2 * 64 * 64)
    left: np.ndarray = (entries % 7).astype(np.float64).reshape(2, 64, 64)
    right: np.ndarray = (entries % 5).astype(np.float64).reshape(2, 64, 64)
    product = np.zeros_like(left)
    for _ in range(products):
        np.matmul(left, right, out=product)
    return int(product.sum())
