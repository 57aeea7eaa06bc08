"""Heats a strip of copper with a hole by the current through it: the source of the second problem comes from the flux
density of the first one.

    python3 python/examples/joule_heating.py [INTERVALS]

INTERVALS across the strip, by default 256. Units are m, V, S/m, W/(m K) and K; sums are per metre of thickness.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Tuple

import jacobisolver

WIDTH, HEIGHT, RADIUS = 0.02, 0.01, 0.002  # m; of the hole
SIGMA, CONDUCTIVITY = 5.8e7, 400.0  # S/m, W/(m K)
VOLTAGE, ENDS = 0.01, 300.0  # V; K


def heated(ranks: jacobisolver.Session, intervals: int) -> Tuple[jacobisolver.Result, jacobisolver.Result]:
    """Returns the potential of a strip between two contacts, and its temperature. The rest of it is insulated."""
    strip: Dict[str, Any] = {"nx": 2 * intervals + 1, "ny": intervals + 1, "width": WIDTH, "height": HEIGHT,
                             "top": "neumann(0)", "bottom": "neumann(0)"}
    hole = f"hypot((x - 0.5)*{WIDTH}, (y - 0.5)*{HEIGHT}) < {RADIUS}"
    potential = ranks.solve(**strip, left=VOLTAGE, right=0, coefficient=f"{hole} ? 0 : {SIGMA}",
                            keys={"output.gradient": True})
    density = potential.arrays["flux_x"] ** 2 + potential.arrays["flux_y"] ** 2  # NaN in the hole, which needs none
    temperature = ranks.solve(**strip, left=ENDS, right=ENDS, coefficient=f"{hole} ? 0 : {CONDUCTIVITY}",
                              source=density / SIGMA,
                              keys={"solver.relative_tolerance": 1e-10})  # of data that are mostly the ends' 300 K
    return potential, temperature


def main(intervals: int = 256) -> Tuple[float, float, float]:
    """Prints and returns the heat that is made over the electric power, the heat that leaves over that which is made,
    and how much the strip warms up over what Kohlrausch's formula says (Annalen der Physik 306, 1900). It holds for a
    body of any shape between two contacts."""
    with jacobisolver.Session() as ranks:
        potential, temperature = heated(ranks, intervals)
    power, made = VOLTAGE * potential.fluxes["left"], temperature.balance["source"]
    out = -(temperature.fluxes["left"] + temperature.fluxes["right"])
    rise, formula = temperature.max - ENDS, SIGMA * VOLTAGE ** 2 / (8 * CONDUCTIVITY)
    print(f"{power:.1f} W/m of electric power, {made:.1f} W/m of heat, of which {out:.1f} leave through the contacts")
    print(f"{rise:.4f} K warmer than the contacts; the formula says {formula:.4f} K")
    return made / power, out / made, rise / formula


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
