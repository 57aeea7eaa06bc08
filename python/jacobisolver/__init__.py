"""Solves -div(a grad u) + k2 u = f on a rectangle of points, on the ranks of the program launcher. help(solve) has the
units and the sides.

    >>> import jacobisolver
    >>> r = jacobisolver.solve(nx=129, ny=129, source="sin(pi*x)*sin(pi*y)")
    >>> r.field[64, 64], r.verdict

A Session starts the ranks once and solves one problem after the other, each in milliseconds:

    >>> with jacobisolver.Session(ranks=2) as s:
    ...     for k2 in (1, 10, 100):
    ...         print(s.solve(nx=129, ny=129, top=1, screening=k2).fluxes["top"])
"""

from ._errors import JacobiError, JacobiWarning, SessionError, SolveError, ToleranceError, ToleranceWarning
from ._problem import Problem
from ._result import Region, Result
from ._session import Session, solve

__all__ = ["JacobiError", "JacobiWarning", "Problem", "Region", "Result", "Session", "SessionError", "SolveError",
           "ToleranceError", "ToleranceWarning", "solve"]
