"""Tests of problems on ranks."""

import os
import signal
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

import jacobisolver
from jacobisolver import _link, _session


def test_a_solution_is_exact_to_its_order(ranks):
    r = ranks.solve(nx=65, ny=33, width=2, source="(pi^2/4 + pi^2)*sin(pi*x)*sin(pi*y)", height=1)
    want = np.sin(np.pi * r.x / 2) * np.sin(np.pi * r.y)[:, None]
    assert r.field.shape == (33, 65) and r.x[-1] == 2 and r.y[-1] == 1
    assert abs(r.field - want).max() < 1e-3
    assert r.converged and r.verdict == "met" and r.history["iteration"].tolist() == list(range(r.iterations + 1))
    assert r.history["norm"][-1] == r.norm and np.shares_memory(np.asarray(r), r.field)
    assert set(r.fluxes) == {"left", "right", "top", "bottom"} and r.fluxes["top"] == pytest.approx(-4, rel=0.01)
    assert type(r.field) is np.ndarray and r.error < 1e-6 and r.error == r.report["accuracy"]["error"]
    assert r.mesh_error == r.report["accuracy"]["mesh"]["error"] > r.error and r.errors["energy"] > 0
    assert repr(r) == f"<jacobisolver.Result 65 x 33: met after {r.iterations} iterations, norm {r.norm:.3g}>"
    assert r._repr_png_().startswith(b"\x89PNG")


def test_what_enters_leaves_again(ranks):
    r = ranks.solve(nx=33, source="2", screening="3*x", top=1, bottom="neumann(x-0.5)")
    b, sides = r.balance, r.balance["sides"]
    assert b["source"] == pytest.approx(2) and b["screening"] > 0 and abs(b["remainder"]) < 1e-6
    assert sum(r.fluxes.values()) + b["source"] - b["screening"] == pytest.approx(b["remainder"], abs=1e-12)
    assert {side: ways["in"] - ways["out"] for side, ways in sides.items()} == pytest.approx(r.fluxes)
    wire = ranks.solve(nx=34, fixed="x == 0.5 and y < 0.4", initial="2", source="2", screening="3*x")
    b = wire.balance
    assert wire.regions[0].points == 0 and b["regions"] == wire.regions[0].flux > 1
    assert sum(wire.fluxes.values()) + b["regions"] + b["source"] - b["screening"] == pytest.approx(
        b["remainder"], abs=1e-12)
    assert sides["bottom"]["in"] == pytest.approx(1 / 8) and ranks.solve(nx=9, results=False).balance == {}


def test_a_field_that_nothing_fixes_has_the_mean_0(ranks):
    sides = dict.fromkeys(("left", "right", "top", "bottom"), "neumann(0)")
    with pytest.warns(UserWarning, match="0.25 is taken off the source at each point"):
        r = ranks.solve(nx=65, source="pi^2*cos(pi*x) + 0.25", **sides)
    assert abs(r.field - np.cos(np.pi * r.x)).max() < 1e-3 and abs(r.mean) < 1e-15
    assert r.report["setup"]["taken_off"]["amount"] == pytest.approx(0.25, abs=1e-15)
    with pytest.raises(jacobisolver.JacobiError, match="the field would be 0 everywhere"):
        ranks.solve(nx=65, **sides)


def test_a_side_may_be_the_axis_of_a_body(ranks):
    r = ranks.solve(nx=17, axis="right", left=1, top="neumann(0)", bottom="neumann(0)", source=-4)
    assert abs(r.field - (1 - r.x) ** 2).max() < 1e-7 and r.fluxes["left"] == pytest.approx(4 * np.pi)
    with pytest.raises(jacobisolver.JacobiError, match='grid.axis "top", problem.top "1": the side is the axis'):
        ranks.solve(nx=17, axis="top", top=1)


def test_arrays_are_as_good_as_expressions(ranks):
    y, x = np.meshgrid(np.linspace(0, 1, 33), np.linspace(0, 1, 33), indexing="ij")
    by_text = ranks.solve(nx=33, source="x*y", coefficient="1 + x", screening="2*x", fixed="x == 0.5",
                          initial="y")
    by_array = ranks.solve(source=x * y, coefficient=1 + x, screening=2 * x, fixed=x == 0.5,
                           initial=y)
    assert (by_text.field == by_array.field).all()
    assert (by_array.field[1:-1, 16] == y[1:-1, 16]).all()
    (region,) = by_array.regions
    assert region.x == 0.5 and region.points == 31 and np.isfinite(region.flux) and by_array.energy > 0


def test_masks_and_images_are_arrays_too(ranks):
    mask = np.zeros((33, 33), np.uint8)
    mask[10:20, 10:20] = 255
    want = ranks.solve(fixed=mask == 255, initial=1).field
    for fixed in mask, mask[None], np.where(mask, 1.0, 0.0):
        assert (ranks.solve(fixed=fixed, initial=1).field == want).all()
    with pytest.warns(jacobisolver.JacobiWarning, match="^initial: NaN at 861 free points, which begin with 0$"):
        unknown = ranks.solve(fixed=mask == 255, initial=np.where(mask, 1, np.nan)).field
    assert np.allclose(unknown, want, atol=1e-7) and abs(want).max() == 1


def test_sides_may_be_arrays(ranks):
    x = np.linspace(0, 1, 33)
    by_text = ranks.solve(nx=33, top="x*x", left="y", right=1, bottom="neumann(x)")
    by_array = ranks.solve(top=x * x, left=list(x), right=np.ones(33, int), bottom="neumann(x)")
    assert (by_text.field == by_array.field).all() and by_text.fluxes == by_array.fluxes
    assert ranks.solve(top=np.ones(9), right=np.ones(5)).field.shape == (5, 9)


def test_a_drawing_has_regions_with_names(ranks):
    pixels = np.full((33, 33, 3), 255, np.uint8)
    pixels[12:21, 8:12] = 0xb8, 0x73, 0x33
    pixels[12:21, 21:25] = 0x15, 0x65, 0xc0
    r = ranks.solve(drawing=pixels, colours={"#b87333": {"name": "plus", "value": 1}, "#ffffff": {},
                                             "#1565c0": {"name": "minus", "value": -1}})
    assert [region.name for region in r.regions] == ["plus", "minus"]
    assert r.region("plus").value == 1 and r.region("plus").points == 50
    assert r.region("plus").flux == pytest.approx(-r.region("minus").flux)
    with pytest.raises(KeyError, match="no region 'zero'; there are"):
        r.region("zero")


def test_regions_may_float_and_have_a_matrix(ranks):
    regions = {"core": {"where": "hypot(x-0.5, y-0.5) < 0.1", "value": 1},
               "shell": {"where": "abs(hypot(x-0.5, y-0.5) - 0.3) < 0.05", "value": "floating(0.25)"}}
    r = ranks.solve(nx=65, regions=regions, matrix=True, relative_tolerance=1e-12)
    assert r.conductors == ["core", "shell"] and r.matrix.shape == (2, 2)
    assert np.allclose(r.matrix, r.matrix.T, rtol=1e-9, atol=0) and r.region("shell").floating
    assert r.region("shell").flux == pytest.approx(0.25, abs=1e-8) and not r.region("core").floating
    values = np.array([region.value for region in map(r.region, r.conductors)])
    assert r.matrix @ values == pytest.approx([r.region("core").flux, 0.25], abs=1e-8)
    again = ranks.solve(nx=65, regions={**regions, "shell": {**regions["shell"], "value": values[1]}},
                        relative_tolerance=1e-12)
    assert (again.field == r.field).all() and again.matrix.shape == (0, 0) and again.conductors == []
    with pytest.raises(jacobisolver.SolveError, match="all regions are floating and no side has values"):
        ranks.solve(nx=65, regions={"a": {"where": "x < 0.2", "value": "floating"}}, left="neumann(0)",
                    right="neumann(0)", top="neumann(0)", bottom="neumann(0)")


def test_holes_do_not_count_and_probes_and_arrays_have_values(ranks):
    y, x = np.meshgrid(np.linspace(0, 1, 33), np.linspace(0, 1, 33), indexing="ij")
    hole = np.hypot(x - 0.5, y - 0.5) < 0.2
    r = ranks.solve(coefficient=np.where(hole, 0.0, 1.0), left=3, right=5, top="neumann(0)", bottom="neumann(0)",
                    keys={"output.probes": "wall=[32,16]; cut=(0,0.5)..(1,0.5)/3", "output.gradient": True})
    assert (np.isnan(r.field) == hole).all() and r.min == 3 and r.max == 5 and r.mean == pytest.approx(4)
    assert np.nanmin(r.field) == 3 and np.nanmax(r.field) == 5
    assert r.probes["wall"].tolist() == [5] and r.probes["cut"].tolist() == [3, 0, 5]
    assert set(r.arrays) == {"flux_x", "flux_y"} and r.arrays["flux_x"].shape == r.field.shape
    assert np.isnan(ranks.solve(nx=9, results=False).mean)
    again = ranks.solve(coefficient=np.where(hole, 0.0, 1.0), left=3, right=5, top="neumann(0)", bottom="neumann(0)",
                        initial=r, source=0 * r.field)
    assert again.iterations < r.iterations and np.allclose(again.field, r.field, equal_nan=True)
    masked = ranks.solve(coefficient=np.ma.masked_array(np.ones((33, 33)), hole), left=3, right=5, top="neumann(0)",
                         bottom="neumann(0)", keys={"output.materials": True})
    assert np.array_equal(masked.field, r.field, equal_nan=True)
    assert set(masked.arrays) == {"coefficient", "fixed", "outside"} and (masked.arrays["outside"] == hole).all()


def test_a_refused_problem_does_not_end_the_session(ranks):
    for arguments, words in [
            ({"source": "foo(x)"}, "problem.source \"foo(x)\": column 1: unknown function foo"),
            ({"keys": {"run.ranks": 3}}, "run.ranks (request): the key belongs to the start of the ranks"),
            ({"nx": 2}, "grid.nx 2: "),
            ({"source": np.full((33, 33), np.nan)}, "source at row 1, column 1 (x = 0.03125, y = 0.03125): NaN; "),
            ({"source": np.zeros(4)}, "source: shape (4,); it must be that of rows and columns"),
            ({"source": np.zeros((9, 5))}, "source: shape (9, 5); it must be (33, 33) for points or (32, 32) for cells "
             "between them (grid.ny, grid.nx)"),
            ({"source": np.zeros((9, 5)), "coefficient": np.ones((9, 6)), "nx": None}, "source: shape (9, 5); it must "
             "be (9, 6) for points or (8, 5) for cells between them (grid.ny, grid.nx, from problem.coefficient)"),
            ({"source": np.eye(33) * 1j}, "source: type <c16; it must be float32, float64, an integer "),
            ({"top": np.ones(9)}, "top: shape (9,); it must be (33,) (grid.nx)"),
            ({"fixed": 2 * np.eye(33)}, "fixed: row 1: column 1: 2 is no truth value, which is 0, 1 or 255"),
            ({"fixed": np.full((33, 33), np.nan)}, "fixed: row 1: column 0: NaN is no truth value"),
            ({"source": np.zeros((33, 33)), "top": float("nan")}, "problem.top \"nan\" (request): must be "),
            ({"width": float("inf")}, "grid.width \"inf\" (request): must be a number that a float64 holds"),
            ({"drawing": __file__, "colours": {}}, "drawing: problem.colours has to say ")]:
        with pytest.raises(jacobisolver.SolveError) as e:
            ranks.solve(**{"nx": 33, **arguments})
        assert str(e.value).startswith(words)
    with pytest.raises(TypeError, match="no_such"):
        ranks.solve(nx=33, no_such=1)
    assert ranks.solve(nx=np.int64(33), top=np.float64(1)).field[0, 1] == 1
    assert ranks.solve(top=1).field.shape == (513, 513)
    visible = [name for name in os.listdir(ranks._dir) if name.endswith((".npy", ".png"))]
    assert visible == [] and not any(name[0] != "." for name in os.listdir(ranks._dir / "out"))


def test_a_missed_tolerance_is_a_warning_or_an_exception(ranks):
    with pytest.warns(jacobisolver.ToleranceWarning, match="after 2 iterations the norm is .* not met") as seen:
        r = ranks.solve(nx=33, top=1, max_iterations=2)
    assert r.verdict == "missed" and not r.converged and seen[0].filename == __file__
    done = ranks.solve(nx=33, top=1, method="jacobi", tolerance=0, max_iterations=2)
    assert done.verdict == "done" and not done.converged
    ranks._on_missed = "raise"
    try:
        with pytest.raises(jacobisolver.ToleranceError) as e:
            ranks.solve(nx=33, top=1, max_iterations=2)
        assert (e.value.result.field == r.field).all()
    finally:
        ranks._on_missed = "warn"


def test_map_keeps_the_order_and_may_be_left(ranks):
    fields = [ranks.solve(nx=33, top=k).field for k in range(1, 6)]
    for k, r in enumerate(ranks.map({"nx": 33, "top": k} for k in range(1, 6))):
        assert (r.field == fields[k]).all()
    for r in ranks.map([{"nx": 33, "top": 1}] * 9, history=False, results=False):
        assert len(r.history) == 0 and r.fluxes == {} and np.isnan(r.energy)
        break
    assert (ranks.solve(nx=33, top=2).field == fields[1]).all()


def test_threads_share_a_session(ranks):
    want, got = ranks.solve(nx=33, top=1).field, {}

    def work(k):
        got[k] = ranks.solve(nx=33, top=1).field

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((got[k] == want).all() for k in range(4))


def test_the_end_of_the_ranks_is_an_error_with_their_sentence():
    with pytest.raises(jacobisolver.SessionError, match="^device.threads -1: "):
        jacobisolver.solve(nx=33, start={"device.threads": -1})
    s = jacobisolver.Session()
    s.solve(nx=33, top=1)
    s._link._process.send_signal(signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(jacobisolver.SessionError, match="^the launcher .*/launcher was killed by SIGKILL$"):
            s.solve(nx=33, top=1)
    s.close()
    assert not s._dir.exists()


def test_a_session_that_does_not_start_says_why():
    for arguments, words in [
            ({"ranks": 0}, "-np 0: must be at least 1"),
            ({"keys": {"device.threads": None}}, 'device.threads "null" (--set): '),
            ({"keys": {"solver.tolerance": float("nan")}}, 'solver.tolerance "nan" (--set): '),
            ({"directory": "/no/such"}, "directory '/no/such': No such file or directory")]:
        with pytest.raises(jacobisolver.SessionError) as e:
            with jacobisolver.Session(**arguments) as s:
                s.solve(nx=9, top=1)
        assert str(e.value).startswith(words)
    with jacobisolver.Session(keys={"output.results": False, "problem.coefficient": "x < 0.5 ? 0 : 1"}) as s:
        assert np.isnan(s.solve(nx=9, top=1).field[:, :4]).all()


@pytest.mark.parametrize("host, want", [
    (None, 1), ("a", 1), ("a:4, b:3", 7), ("a,b:2", 3), ("10.0.0.1:2,[fe80::1]:3,[fe80::1],fe80::2:7", 7)])
def test_each_slot_of_a_host_has_a_rank(host, want):
    assert _session._slots(host) == want


def test_pictures_leave_out_points_outside(ranks):
    class Axes:
        def __init__(self):
            self.figure, self.calls = self, {}

        def __getattr__(self, name):
            return lambda *values, **options: self.calls.setdefault(name, (values, options))

    r = ranks.solve(nx=33, ny=17, top=1, coefficient="x < 0.5 ? 0 : 1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calls = r.plot(Axes()).calls
    (shown,), options = calls["imshow"]
    assert np.array_equal(shown, r.field, equal_nan=True) and np.isnan(shown[:, :16]).all()
    hx = 1 / 32
    assert options["extent"] == pytest.approx((-hx / 2, 1 + hx / 2, 0.5 + hx / 2, -hx / 2))
    assert np.array_equal(calls["contour"][0][2], r.field, equal_nan=True)
    picture = r._repr_png_()
    assert picture[16:24] == (33 * 7).to_bytes(4, "big") + (17 * 7).to_bytes(4, "big")
    rows = np.frombuffer(zlib.decompress(picture[picture.index(b"IDAT") + 4:-16]), np.uint8).reshape(17 * 7, -1)
    pixels = rows[:, 1:].reshape(17 * 7, 33 * 7, 3)
    assert (pixels[:, :16 * 7] == 255).all() and (pixels[:, 16 * 7:] != 255).any(axis=2).all()


def test_a_plot_is_one_of_matplotlib(ranks):
    pytest.importorskip("matplotlib", reason="NOT RUN: it needs matplotlib").use("Agg")
    r = ranks.solve(nx=33, ny=17, top=1, coefficient="x < 0.5 ? 0 : 1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = r.plot()
    assert ax.images[0].get_array().shape == (17, 33) and ax.images[0].get_array().mask[:, :16].all()


def test_a_problem_that_waits_when_a_rank_dies_is_an_error_of_the_session():
    with jacobisolver.Session() as s:
        s.solve(nx=33, top=1)
        children = Path(f"/proc/{s._link._process.pid}/task").glob("*/children")
        rank = int("".join(c.read_text() for c in children))
        requests = [_link.Request(next(s._numbers)) for _ in range(3)]
        for r in requests:
            s._send(r, jacobisolver.Problem(nx=4097, top=1), True, True)  # seconds
        os.kill(rank, signal.SIGKILL)
        with pytest.raises(jacobisolver.JacobiError, match="was killed by SIGKILL"):
            s._receive(requests[0])
        for r in requests[1:]:
            with pytest.raises(jacobisolver.SessionError, match="rank 0 .*was killed by SIGKILL"):
                s._receive(r)
