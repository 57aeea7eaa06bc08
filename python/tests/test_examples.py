"""Tests of the examples."""

import doctest
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jacobisolver._launcher import find

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "examples"))


def test_fifty_ohms(capsys):
    import fifty_ohms

    assert fifty_ohms.main(4) == pytest.approx(1.624, abs=1e-3)
    assert capsys.readouterr().out.startswith("50 ohms: 1.624 times as wide")


def test_joule_heating(ranks, capsys):
    import joule_heating

    made, out, rise = joule_heating.main(64)
    assert (made, out, rise) == pytest.approx((0.99374, 1, 0.99073), abs=1e-5)
    assert capsys.readouterr().out.splitlines()[1] == "1.7957 K warmer than the contacts; the formula says 1.8125 K"
    potential, temperature = joule_heating.heated(ranks, 64)
    u = potential.field
    formula = joule_heating.SIGMA / (2 * joule_heating.CONDUCTIVITY) * u * (joule_heating.VOLTAGE - u)
    off = np.nanmax(abs(temperature.field - joule_heating.ENDS - formula)) / np.nanmax(formula)
    assert off == pytest.approx(0.01255, abs=1e-4)  # at the edge of the hole
    assert abs(temperature.balance["remainder"]) < 1e-6 * temperature.balance["source"]


def test_lines_of_the_page(tmp_path, monkeypatch, capsys):
    """The lines of Python in docs/studies.md run, beside the table of a study whose values have commas."""
    monkeypatch.chdir(tmp_path)
    study = ["study", "-q", "-np", "1", "--set", "problem.top=1", "--set", "output.results=true"]
    study += ["--vary", "grid.nx=9,17", "--vary", "problem.left=0,robin(1,20)"]
    subprocess.run([find(), *study], check=True, stdout=subprocess.DEVNULL)
    names = {}
    examples = doctest.DocTestParser().get_examples((ROOT / "docs" / "studies.md").read_text())
    for e in examples:
        exec(compile(e.source, f"studies.md:{e.lineno}", "single"), names)
    assert len(examples) >= 6
    assert [row["problem.left"] for row in names["rows"]] == ["0", "robin(1,20)"] * 2
    assert "met" in capsys.readouterr().out
