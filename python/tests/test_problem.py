"""Tests of what needs no ranks."""

import dataclasses
import zlib

import numpy as np
import pytest

import jacobisolver
from jacobisolver import _launcher, _problem, _png


def keys(**arguments):
    return jacobisolver.Problem(**arguments).to_keys(lambda name, values: name + ".npy")


def test_arguments_become_keys():
    assert keys(nx=9, ny=5, width=2.0, left="neumann(0)", top=1, screening=3, method="jacobi", max_iterations=7,
                keys={"output.contours": 2}) == {
        "grid.nx": 9, "grid.ny": 5, "grid.width": 2.0, "problem.left": "neumann(0)", "problem.top": 1,
        "problem.screening": 3, "solver.method": "jacobi", "solver.max_iterations": 7, "output.contours": 2,
        "problem.preset": ""}


def test_the_mesh_is_that_of_the_arrays():
    assert keys(source=np.zeros((5, 9))) == {"grid.nx": 9, "grid.ny": 5, "problem.source": "source.npy",
                                             "problem.preset": ""}
    assert keys(nx=7)["grid.ny"] == 7
    for arguments, text in [
            ({}, "nx: a problem without arrays needs the number of points"),
            ({"source": np.zeros(4)}, "source: an array of 1 dimensions; it must have the shape (ny, nx)"),
            ({"source": np.zeros((5, 9)), "nx": 8}, "source: an array of shape (5, 9); the mesh has (5, 8)"),
            ({"initial": np.zeros((5, 9)), "source": np.zeros((9, 5))},
             "source: an array of shape (9, 5); the mesh has (5, 9)"),
            ({"nx": 9, "top": 1, "keys": {"problem.top": 2}}, "top: keys has problem.top, too")]:
        with pytest.raises(ValueError) as e:
            keys(**arguments)
        assert str(e.value) == text


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
    want = {"grid.nx": 4, "grid.ny": 3, "problem.drawing": "drawing.png", "problem.colours": colours,
            "problem.preset": ""}
    assert jacobisolver.Problem(drawing=pixels, colours=colours).to_keys(write) == want
    data = written["drawing"]
    raw = np.frombuffer(zlib.decompress(data[data.index(b"IDAT") + 4:-16]), np.uint8).reshape(3, 13)
    assert (raw[:, 1:].reshape(3, 4, 3) == pixels).all()
    (tmp_path / "d.png").write_bytes(data)
    p = jacobisolver.Problem(drawing=tmp_path / "d.png", colours=colours, nx=8)
    assert p.to_keys(write) == {**want, "grid.nx": 8} and written["drawing"] == data
    (tmp_path / "d.png").write_bytes(data[:20])
    with pytest.raises(ValueError, match="drawing: no PNG"):
        p.shape()
    with pytest.raises(ValueError, match=r"drawing: an array of float64 of shape \(3, 4\); it must be of uint8"):
        jacobisolver.Problem(drawing=np.zeros((3, 4))).shape()


def test_arrays_are_stored_as_launcher_reads_them():
    stored = _problem.as_stored
    assert stored("fixed", np.eye(3)).dtype == bool
    assert stored("source", np.eye(3, dtype=np.float32)).dtype == np.float32
    assert stored("source", np.eye(3, dtype=int).T).dtype == np.float64
    with pytest.raises(ValueError, match="complex128"):
        stored("source", np.eye(3) * 1j)


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
    with pytest.raises(jacobisolver.SessionError, match="JACOBI_LAUNCHER can name it"):
        _launcher.find()
