"""Tests of the examples."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


def test_fifty_ohms(capsys):
    import fifty_ohms

    assert fifty_ohms.main(4) == pytest.approx(1.632, abs=1e-3)
    assert capsys.readouterr().out.startswith("50 ohms: 1.632 times as wide")
