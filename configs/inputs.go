package configs

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"image"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"jacobi/internal/base/imagefile"
	"jacobi/internal/base/npy"
	"jacobi/internal/base/regular"
)

// dirOf returns the directory of the file at path, in which the files that it names are looked for first; "" for the
// working directory.
func dirOf(path string) string {
	if dir := filepath.Dir(path); path != "" && path != StandardInput && dir != "." {
		return dir
	}
	return ""
}

// path returns text, the value of a key, or the path of the file that it names if that lies in the directory of the
// source. The others mean files in the working directory.
func (o origin) path(k key, text string) string {
	if o.dir == "" || !k.namesFile(text) || filepath.IsAbs(text) {
		return text
	}
	there := filepath.Join(o.dir, text)
	if _, err := os.Stat(there); err != nil {
		return text
	}
	return there
}

// namesFile reports whether text as the value of k names a file that the run reads, and is not an expression.
func (k key) namesFile(text string) bool {
	return text != "" && (k.kind == filePath || k.kind == expression && NamesInput(text))
}

// IsArray reports whether a name ends as that of an array.
func IsArray(name string) bool { return strings.EqualFold(filepath.Ext(name), ".npy") }

// NamesInput reports whether a value of a problem names a file.
func NamesInput(text string) bool { return IsArray(text) || imagefile.Named(text) }

// Missing returns err. If it says that an input of the problem does not exist, it also says where those of the run file
// were looked for.
func (p Problem) Missing(err error) error {
	if p.Dir == "" || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w; names in the file were looked for in %q, too", err, p.Dir)
}

// Input is a file that a run reads.
type Input struct {
	Key, Path string
	ByRunFile bool // beside the run file, not in the working directory
}

// Inputs returns the files that the keys of a problem name.
func (c Config) Inputs() (list []Input) {
	for _, k := range c.inputs() {
		dir, text := c.Problem.Dir, k.text(c)
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
		if k.kind == expression && k.namesFile(k.text(c)) {
			list = append(list, k)
		}
	}
	return list
}

// size returns the points of a mesh for the first file of the problem that has a size, and its key: the corners of a
// picture's pixels, or the columns and rows of an array. Without one, key is "".
func (p Problem) size() (size image.Point, key string) {
	for _, k := range []namedText{{"problem.drawing", p.Drawing}, {"problem.fixed", p.Fixed},
		{"problem.coefficient", p.Coefficient}, {"problem.source", p.Source}, {"problem.initial", p.Initial},
		{"problem.screening", p.Screening}} {
		size := sizeOf(k.text)
		if size.X > 0 && imagefile.Named(k.text) {
			size = size.Add(p.corners())
		}
		if size.X > 0 {
			return size, k.key
		}
	}
	sides := p.sides()
	line := func(sides []namedText) int {
		for _, side := range sides {
			if size := sizeOf(side.text); size.X == 0 && size.Y > 0 {
				key = cmp.Or(key, side.key)
				return size.Y
			}
		}
		return 0
	}
	y, x := line(sides[:2]), line(sides[2:])
	return image.Pt(cmp.Or(x, y), cmp.Or(y, x)), key
}

// corners returns the columns and rows that a mesh with points at the corners of pixels has more than its picture: 1,
// and 2 between periodic sides.
func (p Problem) corners() image.Point {
	more := image.Pt(1, 1)
	if p.Left == Periodic {
		more.X = 2
	}
	if p.Top == Periodic {
		more.Y = 2
	}
	return more
}

// sizeOf returns the pixels of a picture, the columns and rows of an array, or 0 columns and the rows of one that is a
// line; 0 and 0 where there is no such file, which opening the problem reports.
func sizeOf(name string) (size image.Point) {
	if !NamesInput(name) {
		return size
	}
	f, err := regular.Open(name)
	if err != nil {
		return size
	}
	defer f.Close()
	if imagefile.Named(name) {
		if format, ok := imagefile.Of(f); ok {
			c, _ := format.Config(f)
			size = image.Pt(c.Width, c.Height)
		}
		return size
	}
	h, _ := npy.ReadHeader(bufio.NewReader(f))
	if h.Dimensions() <= 2 {
		_, _ = fmt.Sscanf(h.Squeezed(), "(%d, %d)", &size.Y, &size.X)
	}
	return size
}
