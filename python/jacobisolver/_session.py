"""Ranks that stay, and solve one problem after the other."""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import warnings
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Type, Union

import numpy as np
from numpy.typing import NDArray

from . import _launcher
from ._errors import SessionError, SolveError, ToleranceError, ToleranceWarning
from ._problem import Problem, as_stored
from ._result import Result, result

_EXIT_OK, _EXIT_MISSED = 0, 4
_HISTORY = np.dtype([("iteration", np.int64), ("norm", np.float64)])
_CLOSE_SECONDS = 60.0
_AHEAD = 2  # problems of Session.map that are on their way at once for each rank, and one more


class Session:
    """Ranks that start once, for many problems. It is a context manager, and can be used by several threads.

    ranks: how many; by default 1, or the slots of host.
    host: where, as in "a:4,b:4"; by default here. See docs/running.md.
    keys: keys of the start and of all problems, as in {"device.backend": "cuda"}.
    on_missed: what a run above its tolerance does: "warn", "raise" or "ignore".
    launcher: the program; by default $JACOBI_LAUNCHER, the one beside this package, or the one on PATH.
    directory: where arrays and fields are kept meanwhile. Ranks on other hosts must see it where arrays are arguments.
    arguments: further arguments of `launcher serve`.
    """

    def __init__(self, ranks: Optional[int] = None, host: Optional[str] = None, *,
                 keys: Optional[Mapping[str, Any]] = None, on_missed: str = "warn",
                 launcher: Optional[Union[str, "os.PathLike[str]"]] = None,
                 directory: Optional[Union[str, "os.PathLike[str]"]] = None, arguments: Iterable[str] = ()) -> None:
        if on_missed not in ("warn", "raise", "ignore"):
            raise ValueError(f'on_missed {on_missed!r}: allowed are "warn", "raise" and "ignore"')
        self._ranks = ranks if ranks is not None else _slots(host)
        command = [_launcher.find(launcher), "serve", "--quiet", "-np", str(self._ranks)]
        if host is not None:
            command += ["--host", host]
        for name, value in (keys or {}).items():
            command += ["--set", f"{name}={_text(value)}"]
        self._on_missed = on_missed
        self._lock = threading.RLock()
        self._number = 0
        self._reports: Dict[int, Dict[str, Any]] = {}  # that were read, by the number of the request
        self._ends: Dict[int, Dict[str, Any]] = {}
        self._dir = Path(tempfile.mkdtemp(prefix="jacobisolver-", dir=directory))
        self._log: IO[bytes] = open(self._dir / "log", "w+b")
        try:
            self._process = subprocess.Popen(
                [*command, "--set", "output.dir=out", *arguments], cwd=self._dir, env=_launcher.environment(),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        except OSError as e:
            self._remove()
            raise SessionError(f"{command[0]}: {e}") from e

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def solve(self, problem: Optional[Problem] = None, *, history: bool = True, results: bool = True,
              **arguments: Any) -> Result:
        """Solves a Problem, or one with its arguments. Without history or results the run saves their time.

        It raises SolveError where the problem is refused or fails, and SessionError where the ranks have ended."""
        if problem is not None and arguments:
            raise TypeError("solve: a Problem, or the arguments of one")
        return next(iter(self.map([problem or Problem(**arguments)], history=history, results=results)))

    def map(self, problems: Iterable[Union[Problem, Mapping[str, Any]]], *, history: bool = True,
            results: bool = True) -> Iterator[Result]:
        """Solves problems, or mappings of their arguments, and yields their results in order. It sends the next
        problems while the ranks are at some, which is faster than solve: each rank does small ones of its own."""
        waiting: Deque[_Request] = collections.deque()
        try:
            for p in problems:
                waiting.append(self._send(p if isinstance(p, Problem) else Problem(**p), history, results))
                if len(waiting) > _AHEAD * self._ranks:
                    yield self._receive(waiting.popleft())
            while waiting:
                yield self._receive(waiting.popleft())
        finally:
            for request in waiting:  # nobody wants these
                self._abandon(request)

    def close(self) -> None:
        """Ends the ranks, after the problems that they have."""
        with self._lock:
            if self._process.poll() is None:
                try:
                    assert self._process.stdin is not None
                    self._process.stdin.close()
                    self._process.wait(_CLOSE_SECONDS)
                except (OSError, subprocess.TimeoutExpired):
                    self._process.kill()
                    self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._remove()

    def _remove(self) -> None:
        self._log.close()
        shutil.rmtree(self._dir, ignore_errors=True)

    def _send(self, problem: Problem, history: bool, results: bool) -> _Request:
        with self._lock:
            self._number += 1
            r = _Request(self._number)

            def write(name: str, values: Union[NDArray[Any], bytes]) -> str:
                file = f"{name}-{r.number}." + ("png" if isinstance(values, bytes) else "npy")
                r.files.append(self._dir / file)
                if isinstance(values, bytes):
                    r.files[-1].write_bytes(values)
                else:
                    np.save(r.files[-1], as_stored(name, values))
                return file

            try:
                self._write(self._line(problem.to_keys(write), r, history, results))
            except BaseException:
                r.remove()
                raise
            return r

    def _line(self, keys: Dict[str, Any], r: _Request, history: bool, results: bool) -> str:
        """Returns the line of a request."""
        if "output.field" in keys:
            raise ValueError("output.field: a Result has the field")
        keys["output.field"] = f"field-{r.number}.npy"
        keys.setdefault("output.results", results)
        if history:
            keys["output.history"] = f"history-{r.number}.csv"
        try:
            return json.dumps({"id": r.number, "keys": keys}, allow_nan=False, default=_plain)
        except ValueError as e:
            raise ValueError(f"a value of the problem is not finite: {e}") from e

    def _write(self, line: str) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as e:
            raise self._ended() from e

    def _receive(self, r: _Request) -> Result:
        with self._lock:
            try:
                report, end = self._answer(r)
            except KeyboardInterrupt:
                self._abandon(r)
                raise
            finally:
                r.remove()
            if end.get("verdict") == "not_done":
                raise SessionError(end["error"])
            code = end["exit_code"]
            if report is None or code not in (_EXIT_OK, _EXIT_MISSED):
                self._take(report)
                raise SolveError(end.get("error") or f"exit code {code}")
            found = result(report, *self._take(report))
        if code == _EXIT_MISSED:
            text = (f"after {found.iterations} iterations the norm is {found.norm:.3g}: the tolerance is not met "
                    f"({report['stop_reason']})")
            if self._on_missed == "raise":
                raise ToleranceError(text, found)
            if self._on_missed == "warn":
                warnings.warn(text, ToleranceWarning, stacklevel=4)
        return found

    def _answer(self, r: _Request) -> Tuple[Optional[Dict[str, Any]], Dict[str, Any]]:
        """Reads lines up to the end of a request. It keeps those of other threads' requests for them."""
        assert self._process.stdout is not None
        while r.number not in self._ends:
            text = self._process.stdout.readline()
            if not text:
                raise self._ended()
            line = json.loads(text)
            if line["event"] == "report":
                self._reports[line["id"]] = line["report"]
            elif line["event"] == "end":
                self._ends[line["id"]] = line["end"]
        return self._reports.pop(r.number, None), self._ends.pop(r.number)

    def _abandon(self, r: _Request) -> None:
        """Cancels a request and reads its end."""
        with self._lock:
            try:
                self._write(json.dumps({"cancel": r.number}))
                self._take(self._answer(r)[0])
            except SessionError:
                pass
            r.remove()

    def _take(self, report: Optional[Mapping[str, Any]]) -> Tuple[NDArray[Any], Dict[str, NDArray[Any]], NDArray[Any]]:
        """Maps the field and the arrays, reads the history, and removes their files: a map keeps what it shows."""
        field, arrays, history = np.empty((0, 0)), {}, np.empty(0, _HISTORY)
        for file in report.get("files") or [] if report else []:
            path = self._dir / "out" / file["name"]
            kind = path.stem.split("-")  # field-7, field-7-flux_x, history-7
            if kind[0] == "history":
                history = np.loadtxt(path, delimiter=",", skiprows=1, dtype=_HISTORY, ndmin=1)
            elif path.suffix == ".npy":
                mapped = np.load(path, mmap_mode="r")
                if len(kind) == 2:
                    field = mapped
                else:
                    arrays[kind[2]] = mapped
            path.unlink()
        return field, arrays, history

    def _ended(self) -> SessionError:
        """Returns the error for ranks that have ended, with the launcher's last sentence."""
        try:
            self._process.wait(_CLOSE_SECONDS)
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()
        except (OSError, ValueError, subprocess.TimeoutExpired):
            lines = []
        said = lines[-1].split("launcher: ", 1)[-1] if lines else "the session is closed"
        return SessionError(said)


class _Request:
    """A problem that the ranks have."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.files: List[Path] = []  # its arrays

    def remove(self) -> None:
        """Removes the arrays."""
        for file in self.files:
            file.unlink(missing_ok=True)


def _slots(host: Optional[str]) -> int:
    """Returns the sum of the slots of hosts, as in "a:4,b:4"; 1 where there is no number, and without hosts."""
    given = [re.fullmatch(r"(?:\[.*\]|[^:]*):(\d+)", item.strip()) for item in (host or "").split(",")]
    return sum(int(slots[1]) if slots else 1 for slots in given)


def _text(value: Any) -> str:
    """Returns a value of a key for --set."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(value: Any) -> Any:
    """Returns a scalar of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no value of a key")


def solve(problem: Optional[Problem] = None, *, ranks: Optional[int] = None, host: Optional[str] = None,
          start: Optional[Mapping[str, Any]] = None, on_missed: str = "warn",
          launcher: Optional[Union[str, "os.PathLike[str]"]] = None,
          directory: Optional[Union[str, "os.PathLike[str]"]] = None, **arguments: Any) -> Result:
    """Solves one problem on ranks of its own: Session(ranks, host, keys=start, ...).solve(problem, **arguments)."""
    with Session(ranks, host, keys=start, on_missed=on_missed, launcher=launcher, directory=directory) as s:
        return s.solve(problem, **arguments)
