"""Finds how wide a microstrip of 50 ohms is, on a board one unit thick, with ranks that start once.

    python3 python/examples/fifty_ohms.py [INTERVALS]

INTERVALS across the board's thickness: a multiple of 4, by default 16. scipy is used where it is installed.
"""

from __future__ import annotations

import sys
import time
from typing import Callable

import jacobisolver

PERMITTIVITY = 4.4
FREE_SPACE = 376.730313  # ohms
BOX = 8  # its height in thicknesses of the board, and its width in widths of the strip


def impedance(ranks: jacobisolver.Session, width: float, intervals: int) -> float:
    """Returns the impedance in ohms of a strip of that width. It is an area without thickness on the board's surface,
    and the mesh has a row of points there."""
    n, surface = BOX * intervals + 1, 1 - 1 / BOX
    strip = f"abs(y - {surface}) < 1e-6 && abs(x - 0.5) <= {0.5 / BOX}"

    def capacitance(permittivity: float) -> float:
        r = ranks.solve(nx=n, ny=n, width=BOX * width, height=BOX, fixed=strip, initial=f"{strip} ? 1 : 0",
                        coefficient=f"y > {surface} ? {permittivity} : 1", history=False)
        return 2 * r.energy

    return FREE_SPACE / (capacitance(1) * capacitance(PERMITTIVITY)) ** 0.5


def root(f: Callable[[float], float], low: float, high: float, within: float) -> float:
    """Returns where f, which falls, is 0."""
    try:
        from scipy.optimize import brentq
    except ImportError:
        while high - low > within:
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) > 0 else (low, middle)
        return (low + high) / 2
    return float(brentq(f, low, high, xtol=within))


def main(intervals: int = 16) -> float:
    """Prints the width and returns it."""
    begin = time.monotonic()
    with jacobisolver.Session() as ranks:
        width = root(lambda w: impedance(ranks, w, intervals) - 50, 1, 3, 1e-4)
    print(f"50 ohms: {width:.3f} times as wide as the board is thick ({time.monotonic() - begin:.1f} s)")
    return width


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
