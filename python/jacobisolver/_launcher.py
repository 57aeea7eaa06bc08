"""Finds the program launcher."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Optional, Union

from ._errors import SessionError

#: The environment variable that names the program.
VARIABLE = "JACOBI_LAUNCHER"


def find(named: Optional[Union[str, "os.PathLike[str]"]] = None) -> str:
    """Returns the path of launcher: the one that is named, that of JACOBI_LAUNCHER, the one beside this package (as in
    an archive of `make dist`) or this Python, or the first one on PATH."""
    given = named or os.environ.get(VARIABLE)
    if given:
        path = shutil.which(os.fspath(given))
        if path is None:
            source = "launcher" if named else VARIABLE
            raise SessionError(f"{source} {os.fspath(given)!r}: there is no such program")
        return os.path.abspath(path)
    package = Path(__file__).resolve().parent
    for folder in (package, package.parent.parent / "bin", Path(sys.executable).parent):
        path = shutil.which("launcher", path=str(folder))
        if path:
            return path
    path = shutil.which("launcher")
    if path is None:
        raise SessionError(f"launcher is neither beside jacobisolver nor on PATH; {VARIABLE} can name it")
    return os.path.abspath(path)


def environment() -> dict[str, str]:
    """Returns the environment of launcher: without the variable above, which is no key of a run."""
    return {name: value for name, value in os.environ.items() if name != VARIABLE}
