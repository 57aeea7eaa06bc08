package e2e

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// The page of a finished run draws contours and the profile along a line, changes the colours, and saves the picture.
func TestToolsOfTheView(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	end := run(t, dir, "launcher", set(cycling("grid.nx=65", "grid.ny=33", "grid.width=4", "problem.left=-1",
		"problem.right=3", "problem.top=neumann(0)", "problem.bottom=neumann(0)", "output.field=field.npy",
		"problem.initial=0")...)...)
	if end.code != 0 {
		t.Fatal(end.stderr)
	}
	field := readField(t, filepath.Join(dir, "out", "field.npy"), 65, 33)
	l := startLive(t, dir, "view", "out")
	p := browse(t, l.viewURL())
	p.await("window.app && app.field.frame && app.field.frame.cols === 65")
	const pixels = `(() => { const from = byId("picture"), c = document.createElement("canvas");
		c.width = from.width, c.height = from.height;
		const d2 = c.getContext("2d");
		d2.drawImage(from, 0, 0);
		const d = d2.getImageData(0, 0, c.width, c.height).data;
		const first = window.firstPixels ??= d;
		let darker = 0, coloured = 0;
		for (let i = 0; i < d.length; i += 4) {
			darker += d[i] + d[i + 1] + d[i + 2] < first[i] + first[i + 1] + first[i + 2] - 60;
			coloured += Math.abs(d[i] - d[i + 2]) > 100;
		}
		return [darker, coloured];
	})()`
	var plain, lined, grey [2]int
	p.eval(pixels, &plain)
	p.eval(`(byId("contours").click(), `+pixels+")", &lined)
	if plain[0] != 0 || lined[0] < 12*100 { // 12 lines from top to bottom
		t.Errorf("%d darker pixels without contours, %d with", plain[0], lined[0])
	}
	p.eval(`(byId("map").value = "grey", byId("map").dispatchEvent(new Event("change")), `+pixels+")", &grey)
	if plain[1] < 1000 || grey[1] != 0 {
		t.Errorf("%d coloured pixels, %d in grey", plain[1], grey[1])
	}

	var profile [][2]float64
	p.eval(`(byId("line").click(), app.pointer.profile.values())`, &profile)
	for _, v := range profile { // from left to right, where the field is linear
		if want := -1 + v[0]; math.Abs(v[1]-want) > 1e-6 {
			t.Fatalf("%v at a distance of %v, want %v", v[1], v[0], want)
		}
	}
	if n := len(profile); n < 100 || math.Abs(profile[n-1][0]-4) > 1e-12 || profile[n-1][1] != field[16*65+64] {
		t.Errorf("%d values, the last at %v", n, profile[n-1])
	}
	var text string
	p.eval(`(app.pointer.profile.set([0, 0], [1, 1]), byId("profile-text").textContent)`, &text)
	if text != "from (0, 0) to (4, 2), length 4.4721" {
		t.Errorf("the profile is %q", text)
	}

	var saved [2]string
	p.eval(`(() => { let got; HTMLAnchorElement.prototype.click = function () { got = [this.download, this.href]; };
		byId("save").click(); return got; })()`, &saved)
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(saved[1], "data:image/png;base64,"))
	if err != nil || saved[0] != "field.png" {
		t.Fatalf("%q: %v", saved[0], err)
	}
	if img, err := png.Decode(bytes.NewReader(data)); err != nil || img.Bounds().Dx() < 400 {
		t.Errorf("the picture: %v", err)
	}
	p.quiet()
}
