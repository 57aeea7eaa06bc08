"""The launcher's process, the requests to it and its answers."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import io
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import weakref
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._errors import SessionError, SolveError

_LONGEST = 1 << 20  # bytes of a line that the launcher takes, its end included
_LAST_WORDS = 4096  # bytes
_READ = 1 << 16  # bytes; most reports are shorter
_END_SECONDS = 60.0
_SIGNAL_SECONDS = 0.5


@dataclasses.dataclass
class Answer:
    """What the launcher says to a request."""

    report: Optional[Mapping[str, Any]] = None
    end: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    warnings: List[str] = dataclasses.field(default_factory=list)


class Request:
    """A problem for the launcher. Once it is sent, it ends with an answer, or with an error.

    A thread that waits and the reader of the link share no Condition, and so no Future or Event: those are written in
    Python, and Ctrl-C within one leaves its lock held."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.answer = Answer()
        self.unwanted = False
        self.materials = False  # whether the arrays of materials were asked for
        self.arguments: Dict[str, str] = {}  # by what the launcher calls them: keys with the files of arrays
        self.files: List[Path] = []  # the arrays
        self._ends: queue.SimpleQueue[Optional[SessionError]] = queue.SimpleQueue()

    def end(self, error: Optional[SessionError]) -> None:
        """Ends the request, whose files the launcher no longer reads."""
        remove(self.files)
        self._ends.put(error)

    def wait(self) -> Answer:
        """Waits once for the answer, or raises the error.

        CPython does not wake a wait without an end for a signal that arrives just before it begins: Ctrl-C had no
        effect then. After each short wait CPython runs the handler."""
        while True:
            try:
                error = self._ends.get(timeout=_SIGNAL_SECONDS)
            except queue.Empty:
                continue
            if error is not None:
                raise error
            return self.answer

    def about(self, text: str) -> str:
        """Returns a message of the launcher with the names of arguments in the place of files that nobody knows."""
        for file, argument in self.arguments.items():
            text = text.replace(file, argument)
        return text


class Link:
    """A process of `launcher serve` in a folder, which goes with it.

    Threads write and read its lines: a signal in the main thread leaves no half of a line behind, and the launcher
    never waits for this process to read while this one waits for the launcher to read."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.program, self.folder, self._pid = command[0], folder, os.getpid()
        self._lock = threading.Lock()
        self._lines: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        self._waiting: Dict[int, Request] = {}  # in the order of their lines
        self._over = ""  # why there are no answers any more
        with open(folder / "log", "wb") as log:
            try:
                # Ctrl-C is for this process: the launcher has a session of its own, without a terminal.
                self._process = subprocess.Popen(command, bufsize=0, cwd=folder, env=environment, stderr=log,
                                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
            except OSError as e:
                raise SessionError(f"the launcher {self.program} did not start: {e.strerror}") from e
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._reader = threading.Thread(target=self._read, name="jacobisolver reader", daemon=True)
        self._writer = threading.Thread(target=self._write, name="jacobisolver writer", daemon=True)
        _links.add(self)
        self._reader.start()
        self._writer.start()

    def check(self) -> None:
        """Raises an error where requests have no answers."""
        if not self.owned():
            raise SessionError(f"the session is that of process {self._pid}: a process that was forked from it needs "
                               "one of its own")
        if self._over:
            raise SessionError(self._over)

    def owned(self) -> bool:
        """Reports whether this process made the link: one that was forked from it did not."""
        return os.getpid() == self._pid

    def send(self, request: Request, keys: Mapping[str, Any]) -> None:
        """Sends a request."""
        line = json.dumps({"id": request.number, "keys": keys}, allow_nan=False).encode() + b"\n"
        if len(line) > _LONGEST:
            raise SolveError(f"the problem takes {len(line)} bytes as a request, and the launcher at most {_LONGEST}")
        with self._lock:
            self.check()
            self._waiting[request.number] = request
            self._lines.put(line)

    def abandon(self, request: Request) -> None:
        """Cancels a request that nobody wants the answer of, and removes the files of the answer when it is there."""
        if not self.owned():
            return
        with self._lock:
            request.unwanted = True
            if request.number in self._waiting:
                self._lines.put(b'{"cancel": %d}\n' % request.number)
                return
        remove(self.files(request.answer.report))

    def wanted(self) -> bool:
        """Reports whether requests wait for answers; not in a forked process."""
        if not self.owned():
            return False
        with self._lock:
            return any(not r.unwanted for r in self._waiting.values())

    def files(self, report: Optional[Mapping[str, Any]]) -> List[Path]:
        """Returns the files of a report."""
        return [self.folder / "out" / file["name"] for file in (report or {}).get("files") or []]

    def leave(self) -> None:
        """Begins to end the launcher and to remove the folder. It takes no lock, as the garbage collector calls it."""
        if self.owned():
            self._over = self._over or "the session is closed"
            self._lines.put(None)

    def stop(self) -> None:
        """Ends the launcher and removes the folder."""
        if self.owned():
            self.leave()
            self._writer.join()

    def forget(self) -> None:
        """Closes the streams in a forked process, which would keep the launcher from seeing their end."""
        self._input.close()
        self._output.close()

    def _write(self) -> None:
        for line in iter(self._lines.get, None):
            self._put(line)
        with self._lock:
            numbers = list(self._waiting)
        self._put(b"".join(b'{"cancel": %d}\n' % n for n in numbers))
        self._input.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_END_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _put(self, line: bytes) -> None:
        try:
            while line:
                line = line[self._input.write(line):]
        except OSError:
            pass  # the launcher has ended: _read says so

    def _read(self) -> None:
        strange = b""
        line = b""
        try:
            for line in io.BufferedReader(self._output, _READ):  # type: ignore[arg-type]
                self._take(json.loads(line))
        except Exception:  # whatever it is, those who wait have to know
            strange = line
            self._process.kill()
        why = self._why(strange)
        with self._lock:
            self._over = self._over or why
            waiting, self._waiting = list(self._waiting.values()), {}
        for request in waiting:
            request.end(SessionError(self._over))

    def _take(self, line: Mapping[str, Any]) -> None:
        """Takes an event. A line that was no request has an end with the id null: the launcher answers in order, so it
        is the oldest one's."""
        number: Any = line.get("id")
        event = line["event"]
        with self._lock:
            if number is None and event == "end":
                number = next(iter(self._waiting), None)
            request = self._waiting.get(number)
            if request is None:
                return
            if event == "end":
                request.answer.end = line["end"]
                del self._waiting[number]
        if event == "report":
            request.answer.report = line["report"]
        elif event == "message" and line["message"]["level"] == "warn":
            request.answer.warnings.append(line["message"]["text"])
        elif event == "end":
            if request.unwanted:
                remove(self.files(request.answer.report))
            request.end(None)

    def _why(self, strange: bytes) -> str:
        """Says why the launcher has ended."""
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        words, own = _last_words(self.folder / "log")
        if strange:
            return f"the launcher {self.program} answered {strange[:200]!r}, which `launcher serve` does not"
        if code > 0 and own:
            return words
        killed = next((s.name for s in signal.Signals if s == -code), "")
        how = f"was killed by {killed}" if killed else f"ended with exit code {code}"
        return f"the launcher {self.program} {how}" + (f"; it last said: {words}" if words else "")


def _last_words(log: Path) -> Tuple[str, bool]:
    """Returns the last message of the launcher, and whether it is one of our launcher."""
    try:
        with open(log, "rb") as f:
            f.seek(max(0, os.fstat(f.fileno()).st_size - _LAST_WORDS))
            text = f.read(_LAST_WORDS).decode(errors="backslashreplace").strip()
    except OSError:
        return "", False
    begins = [m.end() for m in re.finditer("^launcher: ", text, re.MULTILINE)]
    words = text[begins[-1] if begins else text.rfind("\n") + 1:]
    shown = (c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in words)
    return "".join(shown), bool(begins)


def remove(files: Iterable[Path]) -> None:
    """Removes files where it can: their folder goes with the link."""
    for file in files:
        with contextlib.suppress(OSError):
            file.unlink()


#: Those that have not been collected.
_links: weakref.WeakSet[Link] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for link in list(_links):
        link.stop()


def _forget_all() -> None:
    for link in list(_links):
        link.forget()


os.register_at_fork(after_in_child=_forget_all)
