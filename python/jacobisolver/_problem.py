"""The arguments of a problem, and the keys of the launcher that they stand for."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _png

#: A number or an expression in x and y, which go from 0 to 1.
Value = Union[float, str]
#: The same, or values by point: an array of shape (ny, nx), whose row 0 is the top of the mesh.
Values = Union[float, str, NDArray[Any]]

#: The arguments that may be arrays.
ARRAYS = ("initial", "source", "coefficient", "screening", "fixed")

_KEYS = {"nx": "grid.nx", "ny": "grid.ny", "width": "grid.width", "height": "grid.height", "dtype": "grid.dtype",
         "method": "solver.method", "tolerance": "solver.tolerance",
         "relative_tolerance": "solver.relative_tolerance", "max_iterations": "solver.max_iterations"}


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A boundary value problem: -div(a grad u) + k2 u = f on a rectangle of width x height with nx x ny points.

    Lengths have the unit of `width`. An array has the shape (ny, nx), and its row 0 is the top. What is None has the
    launcher's default.

    nx: points of a row, sides included; by default those of the arrays or of the drawing.
    ny: rows, those of the sides included.
    width: the distance of the first and the last column; by default 1.
    height: the distance of the first and the last row; by default rows and columns have equal spacings.
    left: u on the side, a number or an expression, or "neumann(g)", "robin(h, g)" or "periodic"; by default 0.
        g is the derivative of u outwards, in units of u over length; h u is taken from it, h in 1 over length.
    right: the same.
    top: the same, for row 0.
    bottom: the same, for row ny-1.
    source: f, in units of u over length^2: a number, an expression or an array; by default 0.
    coefficient: a, a number, an expression or an array, 0 where there is no material; by default 1.
    screening: k2, at least 0, in units of 1 over length^2: a number, an expression or an array; by default 0.
    initial: u at the start, and at the fixed points: a number, an expression or an array.
    fixed: points that keep `initial`: a condition in x and y, or an array of truth values.
    drawing: a picture whose colours say which points are fixed, and which materials there are: a PNG file, or an array
        of uint8 of shape (rows, columns, 3). It is scaled to the mesh by the nearest pixel.
    colours: what each colour of the drawing means, as in {"#b87333": {"name": "strip", "value": 1}, "#2e7d32":
        {"coefficient": 4.4}, "#ffffff": {}}: a name for Result.region, u, and a.
    method: "multigrid" or "jacobi".
    relative_tolerance: of the norm of the update, over that of the data; by default 1e-8.
    tolerance: of the norm of the update, in units of u.
    max_iterations: at most as many cycles or sweeps.
    dtype: "float32" or "float64", of the field.
    keys: other keys of the launcher, by name, as in {"output.probes": "centre=(0.5,0.5)"}.
    """

    nx: Optional[int] = None
    ny: Optional[int] = None
    width: Optional[float] = None
    height: Optional[float] = None
    left: Optional[Value] = None
    right: Optional[Value] = None
    top: Optional[Value] = None
    bottom: Optional[Value] = None
    source: Optional[Values] = None
    coefficient: Optional[Values] = None
    screening: Optional[Values] = None
    initial: Optional[Values] = None
    fixed: Optional[Union[str, NDArray[Any]]] = None
    drawing: Optional[Union[str, "os.PathLike[str]", NDArray[np.uint8]]] = None
    colours: Optional[Mapping[str, Mapping[str, Any]]] = None
    method: Optional[str] = None
    relative_tolerance: Optional[float] = None
    tolerance: Optional[float] = None
    max_iterations: Optional[int] = None
    dtype: Optional[str] = None
    keys: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def shape(self) -> Tuple[int, int]:
        """Returns (ny, nx), with which all arrays must agree. A mesh with one of them alone is square."""
        found: Optional[Tuple[int, int]] = None
        for name in ARRAYS:
            value = getattr(self, name)
            if not isinstance(value, np.ndarray):
                continue
            if value.ndim != 2:
                raise ValueError(f"{name}: an array of {value.ndim} dimensions; it must have the shape (ny, nx)")
            ny, nx = found or (self.ny or value.shape[0], self.nx or value.shape[1])
            if value.shape != (ny, nx):
                raise ValueError(f"{name}: an array of shape {value.shape}; the mesh has ({ny}, {nx})")
            found = (ny, nx)
        if found is None and self.drawing is not None:
            rows, columns = _png.size(_picture(self.drawing))
            found = (self.ny or rows, self.nx or columns)
        if found is None:
            side = self.nx or self.ny or self.keys.get("grid.nx") or self.keys.get("grid.ny")
            if side is None:
                raise ValueError("nx: a problem without arrays needs the number of points")
            found = (self.ny or side, self.nx or side)
        return found

    def to_keys(self, write: Callable[[str, Union[NDArray[Any], bytes]], str]) -> Dict[str, Any]:
        """Returns the keys of the problem. write stores an array, or a PNG, and returns the name of its file."""
        keys: Dict[str, Any] = dict(self.keys)
        ny, nx = self.shape()
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "keys" or value is None:
                continue
            name = _KEYS.get(field.name, "problem." + field.name)
            if name in keys:
                raise ValueError(f"{field.name}: keys has {name}, too")
            if field.name == "drawing":
                value = write(field.name, _picture(value))
            elif isinstance(value, np.ndarray):
                value = write(field.name, value)
            keys[name] = value
        keys.setdefault("grid.nx", nx)
        keys.setdefault("grid.ny", ny)
        keys.setdefault("problem.preset", "")
        return keys


def _picture(drawing: Any) -> bytes:
    """Returns a drawing as PNG."""
    if not isinstance(drawing, np.ndarray):
        return Path(drawing).read_bytes()
    if drawing.dtype != np.uint8 or drawing.ndim != 3 or drawing.shape[2] != 3 or drawing.size == 0:
        raise ValueError(f"drawing: an array of {drawing.dtype} of shape {drawing.shape}; it must be of uint8 and of "
                         "shape (rows, columns, 3)")
    return _png.encode(drawing)


def as_stored(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Returns an array as launcher reads it: truth values of `fixed`, and float32 or float64 of the others."""
    if name == "fixed":
        return np.ascontiguousarray(values, dtype=bool)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name}: an array of {values.dtype}; it must have real numbers")
    return np.ascontiguousarray(values, dtype=np.float32 if values.dtype == np.float32 else np.float64)
