"""What a run leaves: the field and its numbers."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Dict, List, Mapping, Optional

import numpy as np
from numpy.typing import NDArray

from ._png import png


@dataclasses.dataclass(frozen=True)
class Region:
    """A connected region of fixed points, or the points of one of `regions`, or of a drawing's colour. a is the
    problem's coefficient.

    name: of the region or the colour; "" for others.
    x: of its first point, from the first column, in the unit of width.
    y: of its first point, from the first row.
    value: of its first point.
    points: how many there are; 0 for an area between points, whose first point is the nearest one.
    floating: whether the value was found, and not given.
    flux: the integral of a du/dn around the region, n into it: its charge by length and vacuum permittivity.
    """

    name: str
    x: float
    y: float
    value: float
    points: int
    flux: float
    floating: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """A solution of -div(a grad u) + k2 u = f. numpy.asarray(result) is its field.

    field: u, shape (ny, nx), row 0 is the top; NaN outside the material. One above 64 MiB is a memory map.
    x: of the columns, shape (nx,): their distances from the first one.
    y: of the rows, shape (ny,): their distances from row 0.
    verdict: "met": the tolerance was met; "missed"; "done": none was asked for.
    iterations: cycles or sweeps.
    seconds: of the cycles or sweeps.
    norm: the last norm of the update, in units of u; nan without any.
    error: about how far u is from the solution of the discrete equations at the worst point, in units of u; nan if it
        is unknown. report["accuracy"] says why, and has a bound.
    mesh_error: about how far that solution is from the one of infinitely fine meshes, in units of u; nan if it is
        unknown. report["accuracy"]["mesh"] says why.
    errors: what the mesh leaves of errors in energy, extremes, fluxes and regions: report["results"]["errors"]; empty
        if they are unknown.
    energy: half of the integral of a |grad u|^2 + k2 u^2; nan without results.
    min: the least u, of the points inside the material; nan without results.
    max: the largest u there.
    mean: the mean u there.
    fluxes: by side: the integral of a du/dn, n out of the mesh.
    balance: what enters and what leaves: report["results"]["balance"]; empty without results.
    regions: connected regions of fixed points.
    matrix: Maxwell's matrix of the regions with values, shape (n, n): the flux into region i with region j at 1, the
        other regions and all sides at 0; shape (0, 0) without the argument matrix. report["results"]["matrix"] also has
        its mutual form and the fluxes of the sides.
    conductors: the names of these regions, in the order of the rows and the columns.
    probes: u at the points of each probe of the key output.probes, by its name.
    arrays: further arrays of shape (ny, nx), by name: those of the keys output.gradient and output.materials.
    history: the fields "iteration" and "norm", a line for each norm; empty without history.
    report: the launcher's report, as in docs/outputs.md.
    """

    field: NDArray[Any]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    verdict: str
    iterations: int
    seconds: float
    norm: float
    error: float
    mesh_error: float
    errors: Mapping[str, Any]
    energy: float
    min: float
    max: float
    mean: float
    fluxes: Dict[str, float]
    balance: Mapping[str, Any]
    regions: List[Region]
    matrix: NDArray[np.float64]
    conductors: List[str]
    probes: Dict[str, NDArray[np.float64]]
    arrays: Dict[str, NDArray[Any]]
    history: NDArray[Any]
    report: Mapping[str, Any]

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met. A run that was asked for none meets none."""
        return self.verdict == "met"

    def region(self, name: str) -> Region:
        """Returns the region with a name."""
        for region in self.regions:
            if region.name == name:
                return region
        raise KeyError(f"no region {name!r}; there are {[r.name for r in self.regions]}")

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> NDArray[Any]:
        return np.array(self.field, dtype=dtype) if copy else np.asarray(self.field, dtype=dtype)

    def __repr__(self) -> str:
        ny, nx = self.field.shape
        return (f"<jacobisolver.Result {nx} x {ny}: {self.verdict} after {self.iterations} iterations, "
                f"norm {self.norm:.3g}>")

    def _repr_png_(self) -> bytes:
        """Returns the picture that notebooks show, row 0 at the top. Points outside the material are white."""
        return png(self.field)

    def plot(self, ax: Any = None, levels: int = 12, **options: Any) -> Any:
        """Draws the field with matplotlib, and contours at `levels` values; returns the axes. `options` are those of
        Axes.imshow."""
        if ax is None:
            import matplotlib.pyplot as plt  # type: ignore[import]

            ax = plt.subplots()[1]
        hx, hy = self.x[-1] / (len(self.x) - 1) / 2, self.y[-1] / (len(self.y) - 1) / 2
        options.setdefault("extent", (-hx, self.x[-1] + hx, self.y[-1] + hy, -hy))
        ax.figure.colorbar(ax.imshow(self.field, **options), ax=ax, label="u")
        if levels and float(np.nanmin(self.field)) < float(np.nanmax(self.field)):
            ax.contour(self.x, self.y, self.field, levels, colors="white", linewidths=0.5)
        ax.set_xlabel("x")
        ax.set_ylabel("y")
        return ax


def number(value: Optional[float]) -> float:
    """Returns a number of a report, in which null stands for none."""
    return math.nan if value is None else float(value)


def result(report: Mapping[str, Any], field: NDArray[Any], arrays: Dict[str, NDArray[Any]],
           history: NDArray[Any]) -> Result:
    """Returns the Result of a report."""
    setup, found = report["setup"], report.get("results") or {}
    matrix = found.get("matrix") or {}
    accuracy, (ny, nx) = report.get("accuracy") or {}, field.shape
    regions = [Region(name=r.get("name", ""), x=r["first"]["x"], y=r["first"]["y"], value=r["first"]["value"],
                      points=r["points"], flux=number(r["flux"]), floating=r.get("floating", False))
               for r in found.get("regions") or []]
    return Result(
        field=field, x=np.arange(nx) * float(setup["spacing_x"]), y=np.arange(ny) * float(setup["spacing_y"]),
        verdict=report["verdict"], iterations=report["sweeps"], seconds=report["times"]["sweeps_seconds"],
        norm=number(report["norm"]),
        error=number(accuracy.get("error")), mesh_error=number((accuracy.get("mesh") or {}).get("error")),
        errors=found.get("errors") or {}, energy=number(found.get("energy")),
        min=number(found["min"]["value"] if found else None), max=number(found["max"]["value"] if found else None),
        mean=number(found.get("mean")),
        fluxes={side: number(flux) for side, flux in (found.get("flux") or {}).items()}, regions=regions,
        balance=found.get("balance") or {}, matrix=np.array(matrix["maxwell"]) if matrix else np.zeros((0, 0)),
        conductors=list(matrix.get("regions") or []),
        probes={name: np.array([number(v) for v in values])
                for name, values in (report.get("probed") or {}).items()},
        arrays=arrays, history=history, report=report)
