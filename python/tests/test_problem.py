"""Tests of what needs no ranks."""

import dataclasses
import zlib
from pathlib import Path

import numpy as np
import pytest

import jacobisolver
from jacobisolver import _launcher, _png


def keys(**arguments):
    return jacobisolver.Problem(**arguments).to_keys(lambda name, values: name + ".npy")


def test_arguments_become_keys():
    assert keys(nx=9, ny=5, width=2.0, left="neumann(0)", top=1, screening=3, method="jacobi", max_iterations=7,
                keys={"output.contours": 2}) == {
        "grid.nx": 9, "grid.ny": 5, "grid.width": 2.0, "problem.left": "neumann(0)", "problem.top": 1,
        "problem.screening": 3, "solver.method": "jacobi", "solver.max_iterations": 7, "output.contours": 2,
        "problem.preset": ""}


def test_a_key_is_given_once():
    with pytest.raises(ValueError, match="^top: keys has problem.top, too$"):
        keys(nx=9, top=1, keys={"problem.top": 2})


def test_values_become_those_of_json():
    assert keys(nx=np.int64(9), top=np.float64(1), left=np.array(2), right=float("nan"), width=float("inf"),
                fixed=True, keys={"run.name": Path("a"), "problem.colours": {"#ffffff": {"value": np.float32(2)}}}) == {
        "grid.nx": 9, "problem.top": 1, "problem.left": 2, "problem.right": "nan", "grid.width": "inf",
        "problem.fixed": True, "run.name": "a", "problem.colours": {"#ffffff": {"value": 2}}, "problem.preset": ""}
    with pytest.raises(TypeError, match="^complex is no value of a key$"):
        keys(nx=9, top=1j)


def test_help_describes_every_field():
    for described in (jacobisolver.Problem, jacobisolver.Result, jacobisolver.Region):
        names = [line.split(":")[0].strip() for line in described.__doc__.splitlines() if ": " in line]
        for field in dataclasses.fields(described):
            assert names.count(field.name) == 1, field.name


def test_a_drawing_becomes_a_file(tmp_path):
    pixels = np.zeros((3, 4, 3), np.uint8)
    pixels[1, 2] = 0xb8, 0x73, 0x33
    written = {}

    def write(name, data):
        written[name] = data
        return name + ".png"

    colours = {"#b87333": {"value": 1}, "#000000": {}}
    want = {"problem.drawing": "drawing.png", "problem.colours": colours,
            "problem.preset": ""}
    assert jacobisolver.Problem(drawing=pixels, colours=colours).to_keys(write) == want
    data = written["drawing"]
    raw = np.frombuffer(zlib.decompress(data[data.index(b"IDAT") + 4:-16]), np.uint8).reshape(3, 13)
    assert (raw[:, 1:].reshape(3, 4, 3) == pixels).all()
    (tmp_path / "d.png").write_bytes(data)
    p = jacobisolver.Problem(drawing=tmp_path / "d.png", colours=colours, nx=8)
    assert p.to_keys(write) == {**want, "grid.nx": 8} and written["drawing"] == data
    with pytest.raises(ValueError, match=r"^drawing: an array of float64 of shape \(3, 4\); it must be of uint8"):
        jacobisolver.Problem(drawing=np.zeros((3, 4))).to_keys(write)


def stored(name, value):
    """Returns the array that an argument becomes."""
    kept = []

    def write(name, values):
        kept.append(values)
        return name + ".npy"

    jacobisolver.Problem(**{name: value}).to_keys(write)
    return kept[0]


def test_arrays_are_stored_as_launcher_reads_them():
    class Like:
        def __array__(self, dtype=None, copy=None):
            return np.eye(3)

    for value in [np.eye(3, dtype=np.float32), np.eye(3), np.eye(3, dtype=int).T, np.eye(3, dtype=bool),
                  np.eye(3, dtype=">f8"), np.eye(3, dtype=np.float16), np.eye(3).tolist(), Like()]:
        got = stored("source", value)
        assert got.dtype == (np.float32 if getattr(value, "dtype", None) == np.float32 else np.float64)
        assert (got == np.eye(3)).all() and got.flags.c_contiguous and type(got) is np.ndarray
    assert stored("top", [1, 2, 3]).tolist() == [1, 2, 3] and stored("top", range(3)).dtype == np.float64
    mask = np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]])
    assert np.array_equal(stored("initial", mask), [[1, np.nan]], equal_nan=True)
    assert stored("coefficient", mask).tolist() == [[1, 0]]
    for value in np.eye(3, dtype=bool), np.eye(3, dtype=int), [[1, 0, 0], [False, 1, 0], [0, 0, 1]]:
        assert stored("fixed", value).dtype == np.asarray(value).dtype and (stored("fixed", value) == np.eye(3)).all()
    masked = np.ma.masked_array([[True, True]], mask=[[False, True]])
    assert stored("fixed", masked).tolist() == [[True, False]]
    for value in np.eye(3), np.full((3, 3), np.nan), 2 * np.eye(3, dtype=int):
        assert stored("fixed", value).dtype == value.dtype  # the launcher looks at the values
    with pytest.raises(ValueError, match="^source: "):
        stored("source", [[1, 2], [3]])
    with pytest.raises(ValueError, match="^source: an array of object; it must be one of numbers$"):
        stored("source", [[1, None]])


def test_help_states_the_equation():
    for text in jacobisolver.solve.__doc__, jacobisolver.Problem.__doc__:
        assert "-div(a grad u) + k2 u = f" in text and "a du/dn + h u = g" in text


def test_a_picture_has_the_pixels_of_the_field():
    data = _png.png(np.array([[0.0, 1.0], [np.nan, np.inf]]))
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[16:24] == b"\0\0\0\x10\0\0\0\x10"
    begin = data.index(b"IDAT") + 4
    pixels = np.frombuffer(zlib.decompress(data[begin:-16]), np.uint8).reshape(16, 49)[:, 1:].reshape(16, 16, 3)
    assert pixels[0, 0].tolist() == [68, 1, 84] and pixels[7, 15].tolist() == [253, 231, 37]
    assert (pixels[8:] == 255).all()
    data = _png.png(np.arange(600 * 300.0).reshape(300, 600))
    assert data[16:24] == b"\0\0\x01\x2c\0\0\0\x96"


def test_launcher_is_found(tmp_path, monkeypatch):
    program = tmp_path / "launcher"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("JACOBI_LAUNCHER", str(program))
    assert _launcher.find() == str(program)
    assert "JACOBI_LAUNCHER" not in _launcher.environment()
    with pytest.raises(jacobisolver.SessionError, match="'no-such': there is no such program"):
        _launcher.find("no-such")
    monkeypatch.delenv("JACOBI_LAUNCHER")
    monkeypatch.setattr(_launcher, "__file__", str(tmp_path / "python" / "jacobisolver" / "_launcher.py"))
    (tmp_path / "bin").mkdir()
    beside = program.rename(tmp_path / "bin" / "launcher")
    assert _launcher.find() == str(beside)
    path = beside.rename(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_launcher.sys, "executable", str(tmp_path / "elsewhere" / "python"))
    assert _launcher.find() == str(path)
    path.unlink()
    missing = "^there is no program launcher, neither beside jacobisolver nor on PATH: JACOBI_LAUNCHER names it$"
    with pytest.raises(jacobisolver.SessionError, match=missing):
        _launcher.find()
    (tmp_path / "Makefile").write_text("")
    with pytest.raises(jacobisolver.SessionError, match=f": `make build` in {tmp_path} builds it, or JACOBI_LAUNCHER"):
        _launcher.find()
