"""Tests of a session and its launcher: what ends, and what is left then."""

import concurrent.futures
import gc
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

import jacobisolver
from jacobisolver import _link
from jacobisolver._link import Request

PACKAGE = Path(__file__).parent.parent


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def soon(holds):
    """Waits for what another process does."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def fake(tmp_path):
    """Makes a launcher that runs lines of Python, which read requests with ask() and answer with say()."""
    def make(*lines):
        program = tmp_path / "launcher"
        program.write_text("\n".join([
            f"#!{sys.executable}", "import json, os, signal, sys",
            "def ask(): return json.loads(sys.stdin.readline())",
            "def say(**event): print(json.dumps(event), flush=True)", *lines]))
        program.chmod(0o755)
        return program
    return make


def send(s, **problem):
    """Sends a request whose answer is not received yet."""
    request = Request(next(s._numbers))
    s._send(request, jacobisolver.Problem(**problem), True, True)
    return request


def error(program, **problem):
    with pytest.raises(jacobisolver.JacobiError) as e:
        jacobisolver.solve(launcher=program, nx=9, **problem)
    return type(e.value), str(e.value)


def test_a_request_that_is_too_long_is_refused_before_it_is_sent(ranks):
    refused = r"^the problem takes 9\d{6} bytes as a request, and the launcher at most 1048576$"
    with pytest.raises(jacobisolver.SolveError, match=refused):
        ranks.solve(nx=9, keys={"problem.colours": {"name": "x" * 9_000_000}})
    longest = 1 << 20
    while True:  # the longest that is sent is refused by the launcher, and not as a line
        try:
            ranks.solve(nx=9, keys={"run.name": "x" * longest})
        except jacobisolver.SolveError as e:
            longest -= 1
            if "bytes as a request" not in str(e):
                assert "run.name" in str(e)
                break
    assert ranks.solve(nx=9, top=1).verdict == "met"


def test_an_answer_without_a_number_is_the_error_of_its_request(ranks, fake, monkeypatch):
    dumps = json.dumps
    with monkeypatch.context() as m:
        m.setattr(_link.json, "dumps", lambda value, **_: dumps(value)[:-1])
        with pytest.raises(jacobisolver.SolveError, match="^no request: "):
            ranks.solve(nx=9, top=1)
    assert ranks.solve(nx=9, top=1).verdict == "met"
    program = fake("ask(), ask()", "say(id=1, event='end', end={'exit_code': 1, 'error': 'a'})",
                   "say(id=None, event='end', end={'exit_code': 1, 'error': 'b'})", "ask()")
    with jacobisolver.Session(launcher=program) as s:
        first, second = (send(s, nx=9) for _ in range(2))
        for request, words in (second, "b"), (first, "a"):
            with pytest.raises(jacobisolver.SolveError, match=f"^{words}$"):
                s._receive(request)


def test_warnings_of_the_launcher_are_warnings(fake):
    program = fake("ask()", "say(id=1, event='message', message={'level': 'warn', 'text': 'the side has no effect'})",
                   "say(id=1, event='message', message={'level': 'info', 'text': 'no warning'})",
                   "say(id=1, event='end', end={'exit_code': 1, 'error': 'refused'})", "ask()")
    with jacobisolver.Session(launcher=program) as s:
        with pytest.warns(jacobisolver.JacobiWarning) as seen:
            with pytest.raises(jacobisolver.SolveError, match="^refused$"):
                s.solve(nx=9)
    assert [str(w.message) for w in seen] == ["the side has no effect"] and seen[0].filename == __file__


def test_a_run_that_a_signal_ends_is_an_error(fake):
    program = fake("ask()", "say(id=1, event='report', report={})",
                   "say(id=1, event='end', end={'exit_code': 143, 'verdict': 'interrupted'})", "ask()")
    assert error(program) == (jacobisolver.SolveError, "the run was interrupted")


def test_a_launcher_that_ends_is_named_with_its_last_words(fake, tmp_path):
    for lines, words in [
            (["ask()", "os.kill(os.getpid(), signal.SIGKILL)"], "was killed by SIGKILL"),
            (["print('launcher: a\\nlauncher: b\\x1b[m\\u202e', file=sys.stderr, flush=True)", "ask()",
              "os.kill(os.getpid(), signal.SIGKILL)"], "was killed by SIGKILL; it last said: b\\x1b[m\\u202e"),
            (["sys.exit(3)"], "ended with exit code 3"),
            (["ask()", "print('a' * 5000 + '\\nb', file=sys.stderr)", "sys.exit(3)"],
             "ended with exit code 3; it last said: b"),
            (["ask()"], "ended with exit code 0"),
            (["ask()", "print('hello', flush=True)", "ask()"],
             "answered b'hello\\n', which `launcher serve` does not"),
            (["ask()", "say(id=[], event='end', end={})", "ask()"],
             'answered b\'{"id": [], "event": "end", "end": {}}\\n\', which `launcher serve` does not')]:
        program = fake(*lines)
        assert error(program) == (jacobisolver.SessionError, f"the launcher {program} {words}")
    program = fake("print('launcher: the\\nwords', file=sys.stderr)", "sys.exit(1)")
    assert error(program) == (jacobisolver.SessionError, "the\nwords")
    program.write_text("no program")
    assert error(program) == (jacobisolver.SessionError, f"the launcher {program} did not start: Exec format error")
    assert [path.name for path in tmp_path.iterdir()] == ["launcher"]


def test_answers_are_read_while_requests_wait(fake):
    """The launcher reads no request while it writes answers that take more than a pipe holds."""
    program = fake("n = 0", "for line in sys.stdin:", "    n += 1", "    if n == 20:",
                   "        for i in range(1, 21):",
                   "            say(id=i, event='end', end={'exit_code': 1, 'error': 'x' * 100_000})")
    with jacobisolver.Session(launcher=program) as s:
        wide = {"problem.fixed": "y" * 500_000}
        for request in [send(s, keys=wide) for _ in range(20)]:
            with pytest.raises(jacobisolver.SolveError, match="^x{100000}$"):
                s._receive(request)


def test_exceptions_can_be_pickled(ranks):
    missed = jacobisolver.ToleranceError("text", ranks.solve(nx=9, top=1))
    again = pickle.loads(pickle.dumps(missed))
    assert str(again) == "text" and (again.result.field == missed.result.field).all()
    for kind in jacobisolver.SolveError, jacobisolver.SessionError:
        again = pickle.loads(pickle.dumps(kind("text")))
        assert type(again) is kind and str(again) == "text"


def miss(k):
    return jacobisolver.solve(nx=33, top=k, max_iterations=1, on_missed="raise")


def test_a_pool_gets_the_error_of_a_missed_tolerance():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(jacobisolver.ToleranceError) as e:
            pool.map_async(miss, [1]).get(timeout=60)
    assert e.value.result.field.shape == (33, 33)


def test_a_forked_child_cannot_use_the_session():
    with jacobisolver.Session() as s:
        before = s.solve(nx=9, top=1).field
        child = os.fork()
        if child == 0:
            code = 1
            try:
                s.solve(nx=9, top=2)
            except jacobisolver.SessionError as e:
                code = 0 if str(e).startswith(f"the session is that of process {os.getppid()}: ") else 2
                s.close()
                s.__exit__(None, None, None)
                jacobisolver._link._stop_all()
                del s
                gc.collect()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert s._dir.exists() and (s.solve(nx=9, top=1).field == before).all()


def test_a_session_ends_while_a_forked_child_lives_on():
    s = jacobisolver.Session()
    s.solve(nx=9, top=1)
    end, begin = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(begin)
        os.read(end, 1)
        os._exit(0)
    begun = time.monotonic()
    s.close()
    assert time.monotonic() - begun < _link._END_SECONDS / 2 and s._link._process.returncode == 0
    os.close(begin)
    os.waitpid(child, 0)


def test_a_collected_session_leaves_nothing_behind():
    left = []
    for keep in "session", "generator", "cycle":
        s = jacobisolver.Session()
        results = s.map({"nx": 9, "top": k} for k in range(5))
        next(results)
        if keep == "cycle":
            s.itself = s
        left.append((s._link._process.pid, s._dir, weakref.ref(s)))
        if keep == "generator":
            del s
            assert left[-1][2]() is not None and next(results).verdict == "met"
        s = results = None
        gc.collect()
        pid, folder, session = left[-1]
        assert session() is None
        soon(lambda: not alive(pid) and not folder.exists())


def test_an_exit_leaves_nothing_behind(tmp_path):
    script = """import jacobisolver, sys
kept = jacobisolver.Session(directory=sys.argv[1])
kept.solve(nx=9, top=1)
next(kept.map([{"nx": 9, "top": 1}] + [{"nx": 1025, "top": 1}] * 2))
print(kept._link._process.pid)"""
    pid = int(subprocess.run([sys.executable, "-c", script, tmp_path], cwd=PACKAGE, check=True, capture_output=True,
                             timeout=120).stdout)
    assert not alive(pid) and not any(tmp_path.iterdir())


def test_a_killed_program_leaves_no_launcher_behind(tmp_path):
    script = """import jacobisolver, os, signal, sys
s = jacobisolver.Session(directory=sys.argv[1])
s.solve(nx=9, top=1)
print(s._link._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)"""
    pid = int(subprocess.run([sys.executable, "-c", script, tmp_path], cwd=PACKAGE, capture_output=True,
                             timeout=120).stdout)
    soon(lambda: not alive(pid))


def interrupted(s):
    """Solves a problem that takes long, and interrupts it once it is requested."""
    before = next(s._numbers)

    def interrupt():
        soon(lambda: max(list(s._link._waiting), default=0) > before)
        signal.raise_signal(signal.SIGINT)  # for this thread: it does not wake the wait of the main one

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        s.solve(nx=2049, method="jacobi", top=1, max_iterations=10**9)
    thread.join()


def test_ctrl_c_ends_the_solve_and_not_the_session():
    with jacobisolver.Session() as s:
        want = s.solve(nx=9, top=1).field
        assert os.getsid(s._link._process.pid) == s._link._process.pid != os.getsid(0)
        for _ in range(3):
            interrupted(s)
        assert (s.solve(nx=9, top=1).field == want).all()
        assert not any(name.endswith(".npy") for name in os.listdir(s._dir / "out"))


def test_close_waits_for_a_result_that_is_read(monkeypatch):
    s = jacobisolver.Session()
    closer = threading.Thread(target=s.close)
    read = s._result

    def slowly(*arguments):
        closer.start()
        closer.join(0.5)  # it does not end: the files of the result are still there
        return read(*arguments)

    monkeypatch.setattr(s, "_result", slowly)
    assert s.solve(nx=9, top=1).verdict == "met"
    closer.join()
    assert not s._dir.exists()


def test_close_waits_for_threads_and_not_for_what_is_cancelled():
    got = []
    s = jacobisolver.Session()
    s.solve(nx=9, top=1)
    thread = threading.Thread(target=lambda: got.append(s.solve(nx=1025, top=1).verdict))
    thread.start()
    soon(lambda: s._link.wanted() or got)
    interrupted(s)
    s.close()
    thread.join()
    assert got == ["met"] and s._link._process.returncode == 0 and not s._dir.exists()
    with pytest.raises(jacobisolver.SessionError, match="^the session is closed$"):
        s.solve(nx=9, top=1)


def test_results_take_no_descriptors(monkeypatch):
    with jacobisolver.Session() as s:
        s.solve(nx=9, top=1)
        before = len(os.listdir("/proc/self/fd"))
        kept = [s.solve(nx=9, top=k) for k in range(50)]
        assert len(os.listdir("/proc/self/fd")) == before
        monkeypatch.setattr(jacobisolver._session, "_MAPPED", 100)
        mapped = s.solve(nx=9, top=1)
        assert (mapped.field == kept[1].field).all() and mapped.field.flags.writeable
        assert not any(name.endswith(".npy") for name in os.listdir(s._dir / "out"))
    assert mapped.field[0, 1] == 1


def test_ctrl_c_leaves_a_session_that_solves_wherever_it_comes():
    """CPython runs signal handlers where functions begin and where those in C end: each of these places is tried, in
    this package and in what its threads share."""
    places = {str(PACKAGE / "jacobisolver"), *(os.path.dirname(m.__file__) for m in (threading, concurrent.futures))}

    def interrupted_at(place, solve):
        passed = 0

        def profile(frame, event, _):
            nonlocal passed
            if event in ("call", "c_return") and os.path.dirname(frame.f_code.co_filename) in places:
                passed += 1
                if passed == place:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        sys.setprofile(profile)
        try:
            solve()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False

    with jacobisolver.Session() as s:
        place = 1
        while interrupted_at(place, lambda: s.solve(nx=9, top=1, history=False, results=False)):
            place += 1
        assert place > 100
        assert s.solve(nx=9, top=1).verdict == "met"
        assert not any(name.endswith(".npy") for name in os.listdir(s._dir / "out"))
