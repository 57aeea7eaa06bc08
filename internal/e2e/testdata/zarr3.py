"""Reads a Zarr group of format 3 as the specification has it (https://zarr-specs.readthedocs.io, version 3.1, and its
codec sharding_indexed), and prints what is in it. It knows the codecs bytes, crc32c and sharding_indexed, and fails on
every field of the metadata that it does not know."""
import hashlib
import json
import pathlib
import struct
import sys

import numpy


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def decode(data, shape, dtype, codecs):
    """Decodes a chunk."""
    first, *rest = codecs
    if first["name"] == "bytes":
        if rest == [{"name": "crc32c"}]:
            data, sum = data[:-4], struct.unpack("<I", data[-4:])[0]
            assert sum == crc32c(data), "wrong checksum"
        else:
            assert not rest, rest
        assert first["configuration"] == {"endian": "little"}, first
        return numpy.frombuffer(data, numpy.dtype(dtype).newbyteorder("<")).reshape(shape)
    assert first["name"] == "sharding_indexed" and not rest, codecs
    c = first["configuration"]
    assert set(c) == {"chunk_shape", "codecs", "index_codecs", "index_location"} and c["index_location"] == "end", c
    assert all(n % k == 0 for n, k in zip(shape, c["chunk_shape"])), (shape, c["chunk_shape"])
    counts = [n // k for n, k in zip(shape, c["chunk_shape"])]
    index = decode(data[-(16 * numpy.prod(counts) + 4):], counts + [2], "uint64", c["index_codecs"])
    whole = numpy.empty(shape, dtype)
    for at in numpy.ndindex(*counts):
        begin, size = (int(v) for v in index[at])
        part = tuple(slice(i * k, i * k + k) for i, k in zip(at, c["chunk_shape"]))
        whole[part] = decode(data[begin:begin + size], c["chunk_shape"], dtype, c["codecs"])
    return whole


def read(path):
    """Returns the values and the names of the dimensions of an array."""
    meta = json.loads((path / "zarr.json").read_text())
    assert set(meta) == {"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
                         "fill_value", "codecs", "attributes", "dimension_names"}, meta
    assert (meta["zarr_format"], meta["node_type"], meta["attributes"]) == (3, "array", {}), meta
    assert meta["chunk_key_encoding"] == {"name": "default", "configuration": {"separator": "/"}}, meta
    assert meta["chunk_grid"]["name"] == "regular", meta
    chunk = meta["chunk_grid"]["configuration"]["chunk_shape"]
    whole = numpy.full([-(-n // k) * k for n, k in zip(meta["shape"], chunk)], meta["fill_value"], meta["data_type"])
    for at in numpy.ndindex(*(n // k for n, k in zip(whole.shape, chunk))):
        data = path.joinpath("c", *map(str, at)).read_bytes()
        part = tuple(slice(i * k, i * k + k) for i, k in zip(at, chunk))
        whole[part] = decode(data, chunk, meta["data_type"], meta["codecs"])
    return whole[tuple(map(slice, meta["shape"]))], meta


root = pathlib.Path(sys.argv[1])
group = json.loads((root / "zarr.json").read_text())
assert set(group) == {"zarr_format", "node_type", "attributes", "consolidated_metadata"}, group
assert (group["zarr_format"], group["node_type"], group["attributes"]) == (3, "group", {}), group
u, x, y = (read(root / name) for name in "uxy")
assert group["consolidated_metadata"] == {
    "kind": "inline", "must_understand": False, "metadata": {"u": u[1], "x": x[1], "y": y[1]}}, group
print(u[0].shape, u[0].dtype, u[1]["dimension_names"], x[1]["dimension_names"], y[1]["dimension_names"], x[0][-1],
      y[0][-1], u[1]["codecs"][0]["configuration"]["chunk_shape"], hashlib.sha256(u[0].tobytes()).hexdigest())
