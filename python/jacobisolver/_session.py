"""Ranks that stay, and solve one problem after the other."""

from __future__ import annotations

import collections
import itertools
import json
import re
import shutil
import sys
import tempfile
import time
import warnings
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Deque, Dict, Iterable, Iterator, Mapping, Optional, Set, Type, Union

import numpy as np
from numpy.typing import NDArray

from . import _launcher
from ._errors import JacobiWarning, SessionError, SolveError, ToleranceError, ToleranceWarning
from ._link import Link, Request, remove
from ._problem import Problem, plain
from ._result import Result, result

if TYPE_CHECKING:
    import os

_EXIT_OK, _EXIT_MISSED = 0, 4
_HISTORY = np.dtype([("iteration", np.int64), ("norm", np.float64)])
_POLL_SECONDS = 0.01
_AHEAD = 2  # problems of Session.map that are on their way at once for each rank, and one more
_MATERIALS = ("coefficient", "fixed")  # arrays of the key output.materials, which writes "outside", too
_MAPPED = 64 << 20  # bytes of arrays that stay in their files; each of these takes a file descriptor


class Session:
    """Ranks that start once, for many problems. It is a context manager, and can be used by several threads, but not by
    processes that are forked from this one.

    ranks: how many; by default 1, or the slots of host.
    host: where, as in "a:4,b:4"; by default here. See docs/running.md.
    keys: keys of the start and of all problems, as in {"device.backend": "cuda"}.
    on_missed: what a run above its tolerance does: "warn", "raise" or "ignore".
    launcher: the program; by default $JACOBI_LAUNCHER, that of the tree of this package, or the one on PATH.
    directory: where arrays and fields are kept meanwhile. Ranks on other hosts must see it where arrays are arguments.
    arguments: further arguments of `launcher serve`.
    """

    def __init__(self, ranks: Optional[int] = None, host: Optional[str] = None, *,
                 keys: Optional[Mapping[str, Any]] = None, on_missed: str = "warn",
                 launcher: Optional[Union[str, os.PathLike[str]]] = None,
                 directory: Optional[Union[str, os.PathLike[str]]] = None, arguments: Iterable[str] = ()) -> None:
        if on_missed not in ("warn", "raise", "ignore"):
            raise ValueError(f'on_missed {on_missed!r}: allowed are "warn", "raise" and "ignore"')
        self._ranks = ranks if ranks is not None else _slots(host)
        self._on_missed = on_missed
        self._keys = dict(keys or {})
        command = [_launcher.find(launcher), "serve", "--quiet", "-np", str(self._ranks)]
        if host is not None:
            command += ["--host", host]
        for name, value in self._keys.items():
            command += ["--set", f"{name}={_text(value)}"]
        self._numbers = itertools.count(1)
        self._held: Set[Request] = set()  # requests that a thread sends, waits for or reads the result of
        try:
            self._dir = Path(tempfile.mkdtemp(prefix="jacobisolver-", dir=directory))
        except OSError as e:
            raise SessionError(f"directory {str(directory or tempfile.gettempdir())!r}: {e.strerror}") from e
        try:
            self._link = Link([*command, "--set", "output.dir=out", *arguments], self._dir, _launcher.environment())
        except BaseException:
            shutil.rmtree(self._dir, ignore_errors=True)
            raise
        weakref.finalize(self, self._link.leave).atexit = False  # at the exit all links stop

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def solve(self, problem: Optional[Problem] = None, *, history: bool = True, results: bool = True,
              **arguments: Any) -> Result:
        """Solves a Problem, or one with its arguments. Without history or results the run saves their time.

        It raises SolveError where the problem is refused or fails, and SessionError where the ranks have ended. Ctrl-C
        cancels the problem, and the session goes on."""
        if problem is not None and arguments:
            raise TypeError("solve: a Problem, or the arguments of one")
        request = Request(next(self._numbers))
        try:
            self._held.add(request)
            self._send(request, problem or Problem(**arguments), history, results)
            return self._receive(request)
        except BaseException:
            self._held.discard(request)
            self._link.abandon(request)
            raise

    def map(self, problems: Iterable[Union[Problem, Mapping[str, Any]]], *, history: bool = True,
            results: bool = True) -> Iterator[Result]:
        """Solves problems, or mappings of their arguments, and yields their results in order. It sends the next
        problems while the ranks are at some, which is faster than solve: each rank does small ones of its own."""
        waiting: Deque[Request] = collections.deque()
        try:
            for p in problems:
                waiting.append(Request(next(self._numbers)))
                self._send(waiting[-1], p if isinstance(p, Problem) else Problem(**p), history, results)
                if len(waiting) > _AHEAD * self._ranks:
                    found = self._receive(waiting[0])
                    waiting.popleft()
                    yield found
            while waiting:
                found = self._receive(waiting[0])
                waiting.popleft()
                yield found
        finally:
            for request in waiting:
                self._link.abandon(request)

    def close(self) -> None:
        """Ends the ranks, after the problems that they have. In a forked process it does nothing."""
        while self._link.wanted() or (self._link.owned() and self._held):
            time.sleep(_POLL_SECONDS)
        self._link.stop()

    def _send(self, request: Request, problem: Problem, history: bool, results: bool) -> None:
        self._link.check()
        number = request.number

        def write(name: str, values: Union[NDArray[Any], bytes]) -> str:
            file = self._dir / (f"{name}-{number}." + ("png" if isinstance(values, bytes) else "npy"))
            request.files.append(file)
            request.arguments[f'problem.{name} "{file.name}"'] = name
            if isinstance(values, bytes):
                file.write_bytes(values)
            else:
                np.save(file, values, allow_pickle=False)
            return file.name

        try:
            keys = problem.to_keys(write)
            if "output.field" in keys:
                raise ValueError("output.field: a Result has the field")
            keys["output.field"] = f"field-{number}.npy"
            keys.setdefault("output.results", results)
            if history:
                keys["output.history"] = f"history-{number}.csv"
            given = {**self._keys, **keys}
            if _porous(given):
                keys.setdefault("output.materials", True)
            request.materials = bool(given.get("output.materials"))
            self._link.send(request, keys)
        except BaseException:
            remove(request.files)
            raise

    def _receive(self, request: Request) -> Result:
        try:
            self._held.add(request)  # within try, as in solve: Ctrl-C right after it must not keep close waiting
            return self._read(request)
        finally:
            self._held.discard(request)

    def _read(self, request: Request) -> Result:
        answer = request.wait()
        for text in answer.warnings:
            _warn(request.about(text), JacobiWarning)
        end, report = answer.end, answer.report
        if end.get("verdict") == "not_done":
            raise SessionError(end["error"])
        code = end["exit_code"]
        if report is None or code not in (_EXIT_OK, _EXIT_MISSED):
            raise SolveError(request.about(end.get("error") or f"the run was {end.get('verdict')}"))
        found = self._result(report, request.materials)
        if code == _EXIT_MISSED:
            text = end.get("error") or (f"after {found.iterations} iterations the norm is {found.norm:.3g}: the "
                                        f"tolerance is not met ({report['stop_reason']})")
            if self._on_missed == "raise":
                raise ToleranceError(text, found)
            if self._on_missed == "warn":
                _warn(text, ToleranceWarning)
        return found

    def _result(self, report: Mapping[str, Any], materials: bool) -> Result:
        """Reads the files of a report, and removes them: a map keeps what it shows. materials says whether their arrays
        were asked for, and not just wanted for the points outside."""
        arrays: Dict[str, NDArray[Any]] = {}
        history = np.empty(0, _HISTORY)
        files = self._link.files(report)
        try:
            for path in files:
                kind = path.stem.split("-")  # field-7, field-7-flux_x, history-7
                if kind[0] == "history":
                    history = np.loadtxt(path, delimiter=",", skiprows=1, dtype=_HISTORY, ndmin=1)
                elif path.suffix == ".npy" and (materials or kind[-1] not in _MATERIALS):
                    array = np.asarray(np.load(path, mmap_mode="c"))  # np.fromfile makes Ctrl-C a TypeError
                    arrays["-".join(kind[2:])] = array if array.nbytes > _MAPPED else array.copy()
        except FileNotFoundError:
            self._link.check()  # another thread has closed the session
            raise
        finally:
            remove(files)
        field = arrays.pop("")
        if "outside" in arrays:
            field[arrays["outside"] if materials else arrays.pop("outside")] = np.nan
        return result(report, field, arrays, history)


def _porous(keys: Mapping[str, Any]) -> bool:
    """Reports whether there may be points outside the material."""
    return isinstance(keys.get("problem.coefficient"), str) or "problem.drawing" in keys


def _warn(text: str, category: Type[Warning]) -> None:
    """Warns of the line outside this package that asked for a result."""
    level = 1
    while sys._getframe(level).f_globals.get("__package__") == __package__:
        level += 1
    warnings.warn(text, category, stacklevel=level + 1)


def _slots(host: Optional[str]) -> int:
    """Returns the sum of the slots of hosts, as in "a:4,b:4"; 1 where there is no number, and without hosts."""
    given = [re.fullmatch(r"(?:\[.*\]|[^:]*):(\d+)", item.strip()) for item in (host or "").split(",")]
    return sum(int(slots[1]) if slots else 1 for slots in given)


def _text(value: Any) -> str:
    """Returns a value of a key for --set."""
    value = plain(value)
    return value if isinstance(value, str) else json.dumps(value)


def solve(problem: Optional[Problem] = None, *, ranks: Optional[int] = None, host: Optional[str] = None,
          start: Optional[Mapping[str, Any]] = None, on_missed: str = "warn",
          launcher: Optional[Union[str, os.PathLike[str]]] = None,
          directory: Optional[Union[str, os.PathLike[str]]] = None, **arguments: Any) -> Result:
    """Solves -div(a grad u) + k2 u = f on a rectangle, on ranks of its own, and returns a Result.

    >>> r = jacobisolver.solve(nx=257, ny=257, source="sin(pi*x)", top=1, right="neumann(0)", ranks=2)

    a is `coefficient`, k2 `screening` and f `source`; with lengths in m and u in K these are in any unit A, A/m^2 and
    A K/m^2. A side has values of u, or "neumann(g)": du/dn = g, in K/m, or "flux(q)": a du/dn = q, which flows in,
    in A K/m, or "robin(h, g)": a du/dn + h u = g, with h in A/m and g in A K/m, or "periodic"; n points out of the
    rectangle. help(jacobisolver.Problem) has all arguments.

    ranks, host, on_missed, launcher and directory are those of a Session; start are its keys. Many problems are quicker
    with one Session."""
    with Session(ranks, host, keys=start, on_missed=on_missed, launcher=launcher, directory=directory) as s:
        return s.solve(problem, **arguments)
