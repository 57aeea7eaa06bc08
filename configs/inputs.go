package configs

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jacobi/internal/base/npy"
	"jacobi/internal/base/regular"
)

// inputs are the keys that may name a file which a run reads.
var inputs = []string{"problem.left", "problem.right", "problem.top", "problem.bottom", "problem.initial",
	"problem.source", "problem.fixed", "problem.drawing", "problem.coefficient", "problem.screening",
	"nats.password_file", "nats.creds", "nats.nkey", "nats.ca", "nats.cert", "nats.key", "nats.secret_file"}

// besideOf returns the directory of the file at path, in which the files that it names are looked for first; "" for the
// working directory.
func besideOf(path string) string {
	if dir := filepath.Dir(path); path != "" && path != StandardInput && dir != "." {
		return dir
	}
	return ""
}

// path returns text, the value of a key, or the path of the file that it names if that lies in the directory of the
// source. The others mean files in the working directory.
func (o origin) path(key, text string) string {
	if o.dir == "" || !slices.Contains(inputs, key) || !namesFile(key, text) || filepath.IsAbs(text) {
		return text
	}
	there := filepath.Join(o.dir, text)
	if _, err := os.Stat(there); err != nil {
		return text
	}
	return there
}

// namesFile reports whether text as the value of an input names a file, and is not an expression.
func namesFile(key, text string) bool {
	ending := strings.ToLower(filepath.Ext(text))
	return text != "" && (!strings.HasPrefix(key, "problem.") || ending == ".npy" || ending == ".png")
}

// Missing returns err. If it says that an input of the problem does not exist, it also says where those of the run file
// were looked for.
func (p Problem) Missing(err error) error {
	if p.Beside == "" || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w; names in the file were looked for in %q, too", err, p.Beside)
}

// Input is a file that a run reads.
type Input struct {
	Key, Path string
	Beside    bool // the run file, not in the working directory
}

// Inputs returns the files that the keys of a problem name.
func (c Config) Inputs() (list []Input) {
	for _, k := range c.inputs() {
		dir, text := c.Problem.Beside, k.text(c)
		list = append(list, Input{k.name, text, dir != "" && strings.HasPrefix(text, dir+string(filepath.Separator))})
	}
	return list
}

// Anywhere returns c with names of the problem's files that lead to them from any directory.
func (c Config) Anywhere() (Config, error) {
	for _, k := range c.inputs() {
		path, err := filepath.Abs(k.text(c))
		if err != nil {
			return c, fmt.Errorf("%s: %w", k.name, err)
		}
		k.set(&c, path)
	}
	return c, nil
}

// inputs returns the keys of the problem that name a file.
func (c Config) inputs() (list []key) {
	for _, k := range keys() {
		if strings.HasPrefix(k.name, "problem.") && slices.Contains(inputs, k.name) && namesFile(k.name, k.text(c)) {
			list = append(list, k)
		}
	}
	return list
}

// size returns the size of the first file that the problem reads: the pixels of a picture, or the columns and rows of
// an array. If there is none, or it cannot be read, ok is false; opening the problem says why.
func (p Problem) size() (size image.Point, ok bool) {
	for _, name := range []string{p.Drawing, p.Fixed, p.Coefficient, p.Source, p.Initial, p.Screening} {
		var read func(io.Reader) (image.Point, error)
		switch strings.ToLower(filepath.Ext(name)) {
		case ".png":
			read = pictureSize
		case ".npy":
			read = arraySize
		default:
			continue
		}
		if f, err := regular.Open(name); err == nil {
			defer f.Close()
			size, err = read(bufio.NewReader(f))
			return size, err == nil
		}
	}
	x, y := lineSize(p.Top, p.Bottom), lineSize(p.Left, p.Right)
	return image.Pt(cmp.Or(x, y), cmp.Or(y, x)), x+y > 0
}

// lineSize returns the number of values in the first array of those of two sides; 0 without one.
func lineSize(sides ...string) (points int) {
	for _, name := range sides {
		if !strings.EqualFold(filepath.Ext(name), ".npy") {
			continue
		}
		if f, err := regular.Open(name); err == nil {
			defer f.Close()
			h, _ := npy.ReadHeader(bufio.NewReader(f)) // opening the problem says what is wrong
			_, _ = fmt.Sscanf(h.Shape, "(%d,)", &points)
			return points
		}
	}
	return 0
}

func pictureSize(r io.Reader) (image.Point, error) {
	c, err := png.DecodeConfig(r)
	return image.Pt(c.Width, c.Height), err
}

func arraySize(r io.Reader) (size image.Point, err error) {
	h, err := npy.ReadHeader(r)
	if err == nil {
		_, err = fmt.Sscanf(h.Shape, "(%d, %d)", &size.Y, &size.X)
	}
	return size, err
}
