package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inputs are the keys that may name a file which a run reads.
var inputs = []string{"problem.initial", "problem.source", "problem.fixed", "problem.drawing", "problem.coefficient",
	"problem.screening", "nats.password_file", "nats.creds", "nats.nkey", "nats.ca", "nats.cert", "nats.key",
	"nats.secret_file"}

// beside replaces the names of inputs that lie beside the file at path, which gives their keys. The others mean files
// in the working directory. It returns the directory of the file if that is another one.
func beside(path string, flat map[string]any) (dir string) {
	dir = filepath.Dir(path)
	if path == StandardInput || dir == "." {
		return ""
	}
	for _, name := range inputs {
		text, ok := flat[name].(string)
		if !ok || !namesFile(name, text) || filepath.IsAbs(text) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, text)); err == nil {
			flat[name] = filepath.Join(dir, text)
		}
	}
	return dir
}

// namesFile reports whether text as the value of an input names a file, and is not an expression.
func namesFile(key, text string) bool {
	ending := strings.ToLower(filepath.Ext(text))
	return text != "" && (!strings.HasPrefix(key, "problem.") || ending == ".npy" || ending == ".png")
}

// Missing returns err. If it says that the input name of the problem does not exist, it also says where it was looked
// for, or that it is beside the run file, where names in flags and the environment do not lead.
func (p Problem) Missing(name string, err error) error {
	if p.Beside == "" || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if there := filepath.Join(p.Beside, name); !filepath.IsAbs(name) {
		if _, gone := os.Stat(there); gone == nil {
			return fmt.Errorf("%w in the working directory, where flags look; did you mean %q?", err, there)
		}
	}
	return fmt.Errorf("%w, neither in %q beside the file that names it nor in the working directory", err, p.Beside)
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
