package docs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
)

// Each key of the run file has one row in the table of configuration.md, and the table has no other keys.
func TestTableOfKeys(t *testing.T) {
	rows := map[string]int{}
	for _, k := range Keys() {
		rows[k.Name]++
		if k.Values == "" || k.Meaning == "" || strings.ContainsAny(k.Meaning, "`[") {
			t.Errorf("%+v: values and meaning must be plain text", k)
		}
	}
	for _, name := range configs.Names() {
		if rows[name] != 1 {
			t.Errorf("%s has %d rows in configuration.md, want 1", name, rows[name])
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("%s has a row in configuration.md, and is no key", name)
	}
}

// The words of the table that shells complete are values of their keys.
func TestWordsOfKeysAreValues(t *testing.T) {
	var all []string
	for _, k := range Keys() {
		for _, w := range k.Words {
			c, err := configs.Load(configs.Options{Set: []string{k.Name + "=" + w}})
			if err == nil {
				err = configs.Validate(c)
			}
			for fault := range strings.SplitSeq(fmt.Sprint(err), "\n") {
				// A value may need another key beside it, but it is allowed by itself.
				if strings.HasPrefix(fault, k.Name+" ") && strings.Contains(fault, "allowed are") {
					t.Errorf("--set %s=%s: %s", k.Name, w, fault)
				}
			}
		}
		if len(k.Words) > 0 {
			all = append(all, k.Name)
		}
	}
	for _, name := range []string{"solver.method", "grid.dtype", "halo.transport", "log.level", "device.kernel"} {
		if !slices.Contains(all, name) {
			t.Errorf("%s has no words", name)
		}
	}
}
