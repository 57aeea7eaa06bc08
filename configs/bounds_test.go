package configs

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// repeated returns text n times, with the number in place of each %d, and commas between.
func repeated(text string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(text, "%d", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// unknowns are the lines about keys that a file has.
func unknowns(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "unknown key %s (file run.yaml): %s\n", name, sectionsHint)
	}
	return b.String()
}

// A file that is far larger than any run is refused at once, and in few words.
func TestLargeFiles(t *testing.T) {
	long := strings.Repeat("x", 900_000)
	for _, c := range []struct{ name, data, want string }{
		{"run.yaml", "a: &a {x: 1}\ngrid:\n  <<: [" + repeated("*a", 20_000) + "]",
			"run file run.yaml: line 3: more than 100 aliases"},
		{"run.yaml", "grid: {nx: [" + repeated("1", 20_000) + "]}",
			"grid.nx [...] (file run.yaml): must be an integer, 3 to 2147483647"},
		{"run.yaml", "a: {" + repeated("k%d: 1", 80_000) + "}", "run file run.yaml: line 1: more than 5000 keys"},
		{"run.yaml", "a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
			"run file run.yaml: line 1: more than 10 sections within one another"},
		{"run.json", "{" + repeated(`"k%d": 1`, 80_000) + "}",
			"run file run.json: line 1, column 53899: more than 5000 keys"},
		{"run.json", strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000),
			"run file run.json: line 1, column 52: more than 10 sections within one another"},
		{"run.json", strings.Repeat(`{"a":`, 90_000),
			"run file run.json: line 1, column 52: more than 10 sections within one another"},
		{"run.json", `{"` + long + `": 1}`, "unknown key " + long[:200] + "… (file run.json): " + sectionsHint},
		{"run.json", `{"\u001b[31m": 1}`, `unknown key \x1b[31m (file run.json): ` + sectionsHint},
		{"run.toml", strings.ReplaceAll(repeated("grid.k%d = 1", 60_000), ",", "\n"),
			"run file run.toml: more than 5000 keys"},
		{"run.toml", strings.ReplaceAll(repeated("[k%d]", 60_000), ",", "\n"),
			"run file run.toml: more than 5000 keys"},
		{"run.yaml", "zzz: {" + repeated("a%d: 1", 9) + "}\n" + strings.ReplaceAll(repeated("zzzz%d: 1", 4000), ",",
			"\n"), "unknown key zzz (file run.yaml): " + sectionsHint + "\n" +
			unknowns("zzzz0", "zzzz1", "zzzz10", "zzzz100", "zzzz1000", "zzzz1001", "zzzz1002", "zzzz1003",
				"zzzz1004") +
			"and 3,991 more faults"},
	} {
		start := time.Now()
		_, err := merge(Options{File: c.name}, []byte(c.data))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s %.40q:\ngot  %v\nwant %s", c.name, c.data, err, c.want)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s %.40q: refused after %v", c.name, c.data, took)
		}
	}
}
