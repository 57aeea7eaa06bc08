"""Draws arrays as PNG without other packages."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Colours of viridis at equal distances.
_COLOURS = np.array([[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129],
                     [92, 200, 99], [170, 220, 50], [253, 231, 37]], dtype=np.float64)


def png(field: NDArray[Any], longest: int = 512) -> bytes:
    """Returns a picture of field, shape (ny, nx), of at most `longest` pixels a side. Values that are not finite are
    white."""
    ny, nx = field.shape
    every = max(1, -(-max(ny, nx) // longest))
    values = np.asarray(field[::every, ::every], dtype=np.float64)
    times = max(1, min(longest // 2 // max(values.shape), 8))
    values = values.repeat(times, axis=0).repeat(times, axis=1)
    good = np.isfinite(values)
    low, high = (values[good].min(), values[good].max()) if good.any() else (0.0, 0.0)
    share = np.where(good, values - low, 0) / (high - low if high > low else 1)
    at = np.linspace(0, 1, len(_COLOURS))
    pixels = np.stack([np.interp(share, at, _COLOURS[:, c]) for c in range(3)], axis=-1).round().astype(np.uint8)
    pixels[~good] = 255
    return encode(pixels)


def encode(pixels: NDArray[np.uint8]) -> bytes:
    """Returns the picture of pixels, shape (rows, columns, 3)."""
    rows, columns = pixels.shape[:2]
    raw = np.zeros((rows, 1 + 3 * columns), dtype=np.uint8)  # each row begins with the filter 0
    raw[:, 1:] = pixels.reshape(rows, -1)
    return (b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0))
            + _chunk(b"IDAT", zlib.compress(raw.tobytes())) + _chunk(b"IEND", b""))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
