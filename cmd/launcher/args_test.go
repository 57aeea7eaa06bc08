package main

import "testing"

// Command lines that are nearly right are refused with what is right.
func TestClumsyCommandLines(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--config"}, "--config: its value is missing, as in --config FILE"},
		{[]string{"-Z"}, "unknown flag -Z; see launcher --help"},
		{[]string{"--confg", "a.yaml"}, "unknown flag --confg: did you mean --config?"},
		{[]string{"--nx=9"}, "unknown flag --nx: keys are set with --set grid.nx=VALUE"},
		{[]string{"--grid.nx=9"}, "unknown flag --grid.nx: keys are set with --set grid.nx=VALUE"},
		{[]string{"run.yaml", "extra"}, `argument "run.yaml": a run file is given with --config, a key with --set; ` +
			`launcher --help lists commands`},
		{[]string{"benhc"}, `argument "benhc": did you mean bench?`},
		{[]string{"study", "run.yaml"}, `study: argument "run.yaml" belongs to no flag; see launcher study --help`},
		{[]string{"doctor", "run.yaml"}, `doctor: argument "run.yaml" is one too many; see launcher doctor --help`},
		{[]string{"convert", "a.npy", "b.vti", "--spacing", "1"}, "convert: removed; docs/outputs.md has lines of " +
			"Python that write a field for ParaView"},
		{[]string{"help", "nx"}, `help "nx": did you mean grid.nx?`},
		{[]string{"help", "zzz"}, `help "zzz": no command, key or section of the run file has this name`},
	} {
		if _, err := command(t, c.args...); err == nil || err.Error() != c.want {
			t.Errorf("launcher %q\ngot  %v\nwant %s", c.args, err, c.want)
		}
	}
}
