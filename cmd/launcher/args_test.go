package main

import "testing"

// Command lines that are nearly right are refused with what is right.
func TestClumsyCommandLines(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"np", "2"}, `argument "np": the number of ranks is given with -np, as in -np 2`},
		{[]string{"--config"}, "--config: its value is missing, as in --config FILE"},
		{[]string{"--timeout"}, "--timeout: its value is missing, as in --timeout 10m"},
		{[]string{"-np", "two"}, `--np "two": must be an integer`},
		{[]string{"-p", "4"}, "unknown flag -p: did you mean -np?"},
		{[]string{"-N", "4"}, "unknown flag -N: did you mean -np?"},
		{[]string{"-Z"}, "unknown flag -Z; see launcher --help"},
		{[]string{"--confg", "a.yaml"}, "unknown flag --confg: did you mean --config?"},
		{[]string{"--nx=9"}, "unknown flag --nx: keys are set with --set grid.nx=VALUE"},
		{[]string{"--grid.nx=9"}, "unknown flag --grid.nx: keys are set with --set grid.nx=VALUE"},
		{[]string{"--set", "grid.nx", "9"}, "--set grid.nx: must be key=value in one word, as in --set grid.nx=9"},
		{[]string{"--set", "gird.nx=9"}, "unknown key gird.nx (--set): did you mean grid.nx?"},
		{[]string{"run.yaml", "extra"}, `argument "run.yaml": a run file is given with --config run.yaml`},
		{[]string{"solve", "run.yaml"}, `argument "run.yaml": a run file is given with --config run.yaml`},
		{[]string{"--tag-output", "rank"}, `argument "rank": must be joined to its flag, as in --tag-output=rank`},
		{[]string{"sovle"}, `unknown command "sovle"; see launcher --help`},
		{[]string{"benhc"}, `unknown command "benhc": did you mean bench?`},
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
