"""The arguments of a problem, and the keys of the launcher that they stand for."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _png

#: A number or an expression in x and y, which go from 0 to 1 (y downwards), or an array of values.
Values = Union[float, str, ArrayLike]

#: The arguments that may be arrays: of shape (ny, nx), and the sides' of shape (nx,) or (ny,).
ARRAYS = ("initial", "source", "coefficient", "screening", "fixed", "left", "right", "top", "bottom")

_KEYS = {"nx": "grid.nx", "ny": "grid.ny", "width": "grid.width", "height": "grid.height", "axis": "grid.axis",
         "dtype": "grid.dtype", "method": "solver.method", "tolerance": "solver.tolerance",
         "relative_tolerance": "solver.relative_tolerance", "max_iterations": "solver.max_iterations",
         "matrix": "output.matrix"}


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A boundary value problem: -div(a grad u) + k2 u = f on a rectangle of width x height with nx x ny points.

    Units are the caller's: with lengths in L, u in U and a in A, f is in A U/L^2 and k2 in A/L^2. A value is a number,
    an expression in x and y (from 0 to 1, y downwards) or an array. Arrays have the shape (ny, nx), with row 0 at the
    top, and those of sides (ny,) or (nx,). Masked points are NaN: no value. Outside the material, where a is 0,
    `source`, `screening` and `initial` need none. What is None has the launcher's default.

    nx: points of a row, sides included; by default those of an array, the corners of the drawing's pixels, or 513.
    ny: rows, those of the sides included; by default as many as nx.
    width: the distance of the first and the last column in L; by default 1.
    height: the distance of the first and the last row; by default rows and columns have equal spacings.
    axis: the side, "left", "right", "top" or "bottom", that is the axis of a body of revolution: distances from it are
        r of cylinder coordinates. That side takes no value.
    left: values of u on the side; or "neumann(g)": du/dn = g, in U/L; or "flux(q)": a du/dn = q, which flows in, in
        A U/L; or "robin(h, g)": a du/dn + h u = g, with h in A/L and g in A U/L; or "periodic". n points out
        of the rectangle. By default u is 0.
    right: the same.
    top: the same, for row 0.
    bottom: the same, for row ny-1.
    source: f; by default 0.
    coefficient: a, which is 0 where there is no material, also at masked points; by default 1.
    screening: k2, at least 0; by default 0.
    initial: u at the start, and at the fixed points; by default 0, which also stands for NaN at free points.
    fixed: points that keep `initial`: a condition in x and y, or an array of truth values, or of 0 and 1 or 255.
    drawing: a picture whose colours say which areas are fixed, and which materials there are: a PNG, BMP or TIFF file,
        or an array of uint8 of shape (rows, columns, 3). It covers the mesh from side to side. Edges may be smooth:
        a pixel with a colour between two listed ones is divided between them.
    colours: what each colour of the drawing means, as in {"#b87333": {"name": "strip", "value": 1}, "#2e7d32":
        {"coefficient": 4.4}, "#ffffff": {}}: a name for Result.region, u, and a.
    regions: areas that keep u, by the names that Result.region takes, in the place of `fixed`: {"strip": {"where":
        "y < 0.1", "value": 1}}. The value of a region or a colour may be "floating": the one with which nothing flows
        into it, or "floating(q)", with the flux q into it, in A U by length.
    matrix: whether Result.matrix is worked out, by a solution for each region with a value.
    method: "multigrid" or "jacobi".
    relative_tolerance: of the norm of the update, over that of the data; by default 1e-8.
    tolerance: of the norm of the update, in U.
    max_iterations: at most as many cycles or sweeps.
    dtype: "float32" or "float64", of the field.
    keys: other keys of the launcher, by name, as in {"output.probes": "centre=(0.5,0.5)"}.
    """

    nx: Optional[int] = None
    ny: Optional[int] = None
    width: Optional[float] = None
    height: Optional[float] = None
    axis: Optional[str] = None
    left: Optional[Values] = None
    right: Optional[Values] = None
    top: Optional[Values] = None
    bottom: Optional[Values] = None
    source: Optional[Values] = None
    coefficient: Optional[Values] = None
    screening: Optional[Values] = None
    initial: Optional[Values] = None
    fixed: Optional[Union[str, ArrayLike]] = None
    drawing: Optional[Union[str, os.PathLike[str], NDArray[np.uint8]]] = None
    colours: Optional[Mapping[str, Mapping[str, Any]]] = None
    regions: Optional[Mapping[str, Mapping[str, Any]]] = None
    matrix: Optional[bool] = None
    method: Optional[str] = None
    relative_tolerance: Optional[float] = None
    tolerance: Optional[float] = None
    max_iterations: Optional[int] = None
    dtype: Optional[str] = None
    keys: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_keys(self, write: Callable[[str, Union[NDArray[Any], bytes]], str]) -> Dict[str, Any]:
        """Returns the keys of the problem. write stores an array, or a PNG, and returns the name of its file."""
        keys: Dict[str, Any] = dict(self.keys)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "keys" or value is None:
                continue
            name = _KEYS.get(field.name, "problem." + field.name)
            if name in keys:
                raise ValueError(f"{field.name}: keys has {name}, too")
            if field.name == "drawing":
                value = write(field.name, _picture(value))
            elif field.name in ARRAYS and not np.isscalar(value):
                value = _stored(field.name, value)
                if value.ndim > 0:
                    value = write(field.name, value)
            keys[name] = value
        keys.setdefault("problem.preset", "")
        return {name: plain(value) for name, value in keys.items()}


def _picture(drawing: Any) -> bytes:
    """Returns a drawing as PNG."""
    if isinstance(drawing, (str, os.PathLike)):
        return Path(drawing).read_bytes()
    pixels = np.asarray(drawing)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.size == 0:
        raise ValueError(f"drawing: an array of {pixels.dtype} of shape {pixels.shape}; it must be of uint8 and of "
                         "shape (rows, columns, 3)")
    return _png.encode(pixels)


def _stored(name: str, value: Any) -> NDArray[Any]:
    """Returns an array as launcher reads it, where there is one: float32 or float64, but for `fixed`. It refuses the
    types that are left."""
    try:
        values: Any = np.asanyarray(value)
    except ValueError as e:  # rows of different lengths
        raise ValueError(f"{name}: {e}") from e
    if values.dtype.hasobject:
        raise ValueError(f"{name}: an array of {values.dtype}; it must be one of numbers")
    empty: Union[bool, float] = False
    if name != "fixed" and values.dtype.kind in "fiub":
        empty = 0.0 if name == "coefficient" else math.nan
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
    if isinstance(values, np.ma.MaskedArray):
        masked: Any = values
        values = masked.filled(empty)
    stored: NDArray[Any] = np.asarray(values)
    return stored if stored.ndim == 0 else np.ascontiguousarray(stored)


def plain(value: Any) -> Any:
    """Returns a value of a key as JSON has it. A number that is not finite goes as text, which launcher refuses."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(name): plain(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is no value of a key")
