import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

import jacobisolver


@pytest.fixture(scope="session")
def ranks():
    """Two ranks that all tests share."""
    with jacobisolver.Session(ranks=2) as s:
        yield s
