package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestRestartCommand(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"bin/launcher|-np|8", "bin/launcher -np 8 --restart"},
		{"launcher|--restart|--set|problem.top=sin(pi*x)", "launcher --set 'problem.top=sin(pi*x)' --restart"},
		{"launcher|--resume|old|-np|2|--resume=older", "launcher -np 2 --restart"},
		{"launcher|--set|run.name=it's $HOME", `launcher --set 'run.name=it'\''s $HOME' --restart`},
		{"launcher|--set|output.field=", "launcher --set output.field= --restart"},
	} {
		args := strings.Split(c.args, "|")
		if got := restartCommand(args); got != c.want {
			t.Errorf("%q: %s, want %s", args, got, c.want)
		}
	}
	args := []string{"printf", `%s\n`, "a b", `"$(echo x)"`, "", "~", "\\", "*", "é", "'"}
	out, err := exec.Command("sh", "-c", restartCommand(args)).Output()
	if want := strings.Join(append(args[2:], "--restart", ""), "\n"); err != nil || string(out) != want {
		t.Errorf("a shell reads %q, want %q; %v", out, want, err)
	}
}
