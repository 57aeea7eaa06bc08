package e2e

import (
	"bytes"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The picture of a field that is mostly 0 is not blank, and has the same bits for any number of ranks. The start of the
// run says which files will be written and how large they will be.
func TestPictureOfAFieldThatIsMostly0(t *testing.T) {
	draw := func(said string, args ...string) (data []byte) {
		t.Helper()
		dir := t.TempDir()
		args = append(set("grid.nx=1200", "grid.ny=200", "solver.max_iterations=300"), args...)
		out := run(t, dir, "launcher", args...)
		if out.code != 0 || !strings.Contains(out.stderr, "launcher: writes "+said+"\n") {
			t.Fatalf("exit code %d, want 0 and %q in\n%s%s", out.code, said, out.stdout, out.stderr)
		}
		data, err := os.ReadFile(filepath.Join(dir, "out", "field.png"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one := draw("out/field.npy (938 KiB), field.png, history.csv, report.json", "-np", "1")
	alone := set("output.field=", "output.history=", "output.report=")
	if three := draw("out/field.png", append(alone, "-np", "3")...); !bytes.Equal(one, three) {
		t.Error("the picture of three ranks is another one than that of one")
	}
	linear := draw("out/field.png", append(alone, "--set", "output.picture_scale=linear", "-np", "2")...)
	if got, before := coloured(t, one), coloured(t, linear); got < 2*before || before == 0 {
		t.Errorf("%d pixels are coloured, %d on a linear scale: want twice as many", got, before)
	}
}

// coloured counts the pixels that are blue or red.
func coloured(t *testing.T, data []byte) (n int) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, _, b, _ := img.At(x, y).RGBA(); max(r, b)-min(r, b) > 0x2000 {
				n++
			}
		}
	}
	return n
}

// The picture outlines an electrode, with the same bits for any number of ranks.
func TestPictureOutlinesAnElectrode(t *testing.T) {
	draw := func(np string) (data []byte) {
		t.Helper()
		dir := t.TempDir()
		out := runNatural(t, dir, "launcher", append(set("problem.fixed=abs(x-0.5)<0.2 and abs(y-0.5)<0.2",
			"problem.top=1", "grid.nx=65"), "-np", np)...)
		if out.code != 0 {
			t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
		}
		data, err := os.ReadFile(filepath.Join(dir, "out", "field.png"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one := draw("1")
	if three := draw("3"); !bytes.Equal(one, three) {
		t.Error("the picture of three ranks is another one than that of one")
	}
	img, err := png.Decode(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	var widths []int // of what is drawn with ink in a row through the electrode
	for x := 1; x < img.Bounds().Dx(); x++ {
		ink := color.RGBA{0x22, 0x22, 0x22, 0xff}
		switch y := img.Bounds().Dy() * 2 / 5; {
		case img.At(x, y) != ink:
		case img.At(x-1, y) != ink:
			widths = append(widths, 1)
		default:
			widths[len(widths)-1]++
		}
	}
	if want := []int{1, 2, 2, 1, 1, 1}; !slices.Equal(widths, want) { // the frame, and that of the colour bar
		t.Errorf("lines of %v pixels, want %v", widths, want)
	}
}
