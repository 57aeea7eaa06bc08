package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxAliases bounds the aliases of a YAML file: each repeats all that its anchor has.
const maxAliases = 100

// octal matches a number that YAML reads with base 8.
var octal = regexp.MustCompile(`^[-+]?0[0-7_]*[1-7][0-7_]*$`)

// checkYAML refuses a YAML file with a second document, which the decoder would ignore, with values that it would
// misread, and with so much that it would take long.
func checkYAML(data []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var n yaml.Node
	if err := d.Decode(&n); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	if n.Kind == yaml.DocumentNode && n.Content[0].Kind != yaml.MappingNode && n.Content[0].Tag != "!!null" {
		return fmt.Errorf("line %d: must be sections with keys", n.Content[0].Line)
	}
	if second := d.Decode(&yaml.Node{}); !errors.Is(second, io.EOF) {
		return errors.New("a second document begins; one is allowed")
	}
	var c yamlCheck
	for line := range strings.Lines(string(data)) {
		c.lines = append(c.lines, []rune(line))
	}
	return c.below(&n, 0)
}

// yamlCheck is a check of a file that goes on.
type yamlCheck struct {
	lines          [][]rune // of the file
	names, aliases int      // that were seen
}

// below refuses a node that the decoder would read otherwise than it looks, or one too many. YAML takes 010 for 8, and
// a word that begins with ! for a tag, which it drops: the condition ! x < 0.5 would become x < 0.5. depth counts the
// sections and lists around the node.
func (c *yamlCheck) below(n *yaml.Node, depth int) error {
	switch n.Kind {
	case yaml.ScalarNode:
		if c.tagged(n) {
			return fmt.Errorf("line %d: text that begins with ! has quotes", n.Line)
		}
		if n.Tag == "!!int" && octal.MatchString(n.Value) {
			return fmt.Errorf("line %d: %s begins with 0, which makes it octal in YAML; a number has no such 0, and "+
				"text has quotes", n.Line, n.Value)
		}
	case yaml.AliasNode:
		if c.aliases++; c.aliases > maxAliases {
			return fmt.Errorf("line %d: more than %d aliases", n.Line, maxAliases)
		}
	case yaml.MappingNode, yaml.SequenceNode:
		if depth++; depth > maxDepth {
			return fmt.Errorf("line %d: %s", n.Line, tooDeep)
		}
		if n.Kind == yaml.MappingNode {
			c.names += len(n.Content) / 2
		}
		if c.names > maxNames {
			return fmt.Errorf("line %d: %s", n.Line, tooMany)
		}
	}
	for _, child := range n.Content {
		if err := c.below(child, depth); err != nil {
			return err
		}
	}
	return nil
}

// tagged reports whether a value begins with !, behind its anchor, and not with !! as the types do.
func (c *yamlCheck) tagged(n *yaml.Node) bool {
	if n.Line > len(c.lines) {
		return false
	}
	rest := c.lines[n.Line-1]
	rest = rest[min(n.Column-1, len(rest)):]
	if n.Anchor != "" {
		rest = rest[min(1+utf8.RuneCountInString(n.Anchor), len(rest)):]
		for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
			rest = rest[1:]
		}
	}
	return len(rest) > 0 && rest[0] == '!' && (len(rest) == 1 || rest[1] != '!')
}
