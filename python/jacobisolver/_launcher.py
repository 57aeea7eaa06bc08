"""Finds the program launcher."""

from __future__ import annotations

import json
import os
import shutil
import sys
import urllib.parse
from importlib import metadata
from pathlib import Path
from typing import List, Optional, Union

from ._errors import SessionError

#: The environment variable that names the program.
VARIABLE = "JACOBI_LAUNCHER"


def find(named: Optional[Union[str, os.PathLike[str]]] = None) -> str:
    """Returns the path of launcher: the one that is named, that of JACOBI_LAUNCHER, the one of the tree of this package
    or the one beside this Python, or the first one on PATH."""
    given = named or os.environ.get(VARIABLE)
    if given:
        path = shutil.which(os.fspath(given))
        if path is None:
            source = "launcher" if named else VARIABLE
            raise SessionError(f"{source} {os.fspath(given)!r}: there is no such program")
        return os.path.abspath(path)
    trees = _trees()
    for folder in (*(tree / "bin" for tree in trees), Path(sys.executable).parent):
        path = shutil.which("launcher", path=str(folder))
        if path:
            return path
    path = shutil.which("launcher")
    if path is None:
        built = f"`make build` in {trees[-1]} builds it, or " if (trees[-1] / "Makefile").is_file() else ""
        raise SessionError(f"there is no program launcher, neither beside jacobisolver nor on PATH: {built}{VARIABLE} "
                           "names it")
    return os.path.abspath(path)


def _trees() -> List[Path]:
    """Returns the tree of this package, and that from which pip has installed it."""
    trees = [Path(__file__).resolve().parent.parent.parent]
    try:
        origin = json.loads(metadata.distribution("jacobisolver").read_text("direct_url.json") or "{}")
        url = urllib.parse.urlsplit(origin.get("url", ""))
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return trees
    if url.scheme == "file":
        trees.append(Path(urllib.parse.unquote(url.path)).parent)
    return trees


def environment() -> dict[str, str]:
    """Returns the environment of launcher: without the variable above, which is no key of a run."""
    return {name: value for name, value in os.environ.items() if name != VARIABLE}
