"""The arguments of a problem, and the keys of the launcher that they stand for."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

import numpy as np
from numpy.typing import NDArray

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

    Lengths have the unit of `width`. What is None has the launcher's default.
    """

    nx: Optional[int] = None  #: points of a row, sides included; by default those of the arrays
    ny: Optional[int] = None  #: rows
    width: Optional[float] = None  #: from the first to the last column; by default 1
    height: Optional[float] = None  #: from the first to the last row; by default rows and columns have equal spacings
    left: Optional[Value] = None  #: u on the side, "neumann(g)", "robin(h, g)" or "periodic"; by default 0
    right: Optional[Value] = None  #: the same
    top: Optional[Value] = None  #: the same, for row 0
    bottom: Optional[Value] = None  #: the same, for row ny-1
    source: Optional[Values] = None  #: f, in units of u over length^2; by default 0
    coefficient: Optional[Values] = None  #: a, 0 where there is no material; by default 1
    screening: Optional[Values] = None  #: k2, at least 0, in units of 1 over length^2; by default 0
    initial: Optional[Values] = None  #: u at the start, and at the fixed points
    fixed: Optional[Union[str, NDArray[Any]]] = None  #: points that keep `initial`: a condition, or truth values
    method: Optional[str] = None  #: "multigrid" or "jacobi"
    relative_tolerance: Optional[float] = None  #: of the norm of the update, over that of the data; by default 1e-8
    tolerance: Optional[float] = None  #: of the norm of the update, in units of u
    max_iterations: Optional[int] = None  #: at most, cycles or sweeps
    dtype: Optional[str] = None  #: "float32" or "float64" of the field
    keys: Mapping[str, Any] = dataclasses.field(default_factory=dict)  #: other keys of the launcher, by name

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
        if found is None:
            side = self.nx or self.ny or self.keys.get("grid.nx") or self.keys.get("grid.ny")
            if side is None:
                raise ValueError("nx: a problem without arrays needs the number of points")
            found = (self.ny or side, self.nx or side)
        return found

    def to_keys(self, write: Callable[[str, NDArray[Any]], str]) -> Dict[str, Any]:
        """Returns the keys of the problem. write stores an array and returns the name of its file."""
        keys: Dict[str, Any] = dict(self.keys)
        ny, nx = self.shape()
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "keys" or value is None:
                continue
            name = _KEYS.get(field.name, "problem." + field.name)
            if name in keys:
                raise ValueError(f"{field.name}: keys has {name}, too")
            if isinstance(value, np.ndarray):
                value = write(field.name, value)
            keys[name] = value
        keys.setdefault("grid.nx", nx)
        keys.setdefault("grid.ny", ny)
        keys.setdefault("problem.preset", "")
        return keys


def as_stored(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Returns an array as launcher reads it: truth values of `fixed`, and float32 or float64 of the others."""
    if name == "fixed":
        return np.ascontiguousarray(values, dtype=bool)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name}: an array of {values.dtype}; it must have real numbers")
    return np.ascontiguousarray(values, dtype=np.float32 if values.dtype == np.float32 else np.float64)
