package main

import (
	"regexp"
	"strings"

	"jacobi/internal/launch"
)

// plainWord is what no shell takes for anything but itself.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// goOn returns the command line that goes on where the one of args left a checkpoint, as a shell takes it.
func goOn(args []string) string {
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
