package configs

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// octal matches a number that YAML reads with base 8.
var octal = regexp.MustCompile(`^[-+]?0[0-7_]*[1-7][0-7_]*$`)

// misread refuses values below n that YAML reads otherwise than they look. It takes 010 for 8, and a word that begins
// with ! for a tag, which it drops: the condition ! x < 0.5 would become x < 0.5. lines are those of the file.
func misread(n *yaml.Node, lines []string) error {
	switch written := source(n, lines); {
	case n.Kind != yaml.ScalarNode:
	case strings.HasPrefix(written, "!") && !strings.HasPrefix(written, "!!"): // !!str and so on are types
		return fmt.Errorf("line %d: text that begins with ! has quotes", n.Line)
	case n.Tag == "!!int" && octal.MatchString(n.Value):
		return fmt.Errorf("line %d: %s begins with 0, which makes it octal in YAML; a number has no such 0, and "+
			"text has quotes", n.Line, n.Value)
	}
	for _, c := range n.Content {
		if err := misread(c, lines); err != nil {
			return err
		}
	}
	return nil
}

// source returns the rest of the line of a node, from where it begins behind its anchor.
func source(n *yaml.Node, lines []string) string {
	if n.Line > len(lines) {
		return ""
	}
	line := []rune(lines[n.Line-1])
	return strings.TrimLeft(strings.TrimPrefix(string(line[min(n.Column-1, len(line)):]), "&"+n.Anchor), " \t")
}
