package main

import (
	"regexp"
	"strings"

	"jacobi/internal/launch"
)

// plainWord matches a word that needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// restartCommand returns the shell command that restarts the run of args from its newest checkpoint.
func restartCommand(args []string) string {
	var words []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--restart" || strings.HasPrefix(a, "--restart=") || strings.HasPrefix(a, "--resume="):
		case a == "--resume":
			i++ // its value
		case plainWord.MatchString(a):
			words = append(words, a)
		default:
			words = append(words, launch.ShellQuote(a))
		}
	}
	return strings.Join(append(words, "--restart"), " ")
}
