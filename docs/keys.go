// Package docs has the documents of the program, and tests that hold them against the tree.
package docs

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed configuration.md
var configuration string

// Key is a row of the table of keys in configuration.md, as plain text.
type Key struct {
	Name    string   // section.name
	Values  string   // what it takes, in words
	Words   []string // those of the values that are words of their own, such as auto
	Meaning string
}

// Keys returns what configuration.md says of each key, in its order. Keys that share a row share what it says.
func Keys() (list []Key) {
	_, table, _ := strings.Cut(configuration, "\n| key | values | meaning |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 {
			continue
		}
		values := plain(cells[1])
		for name := range strings.SplitSeq(cells[0], ", ") {
			list = append(list, Key{name, values, words(values), plain(cells[2])})
		}
	}
	return list
}

// markdownLink matches a Markdown link, and gives its text.
var markdownLink = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// plain returns the text of a cell without its Markdown.
func plain(cell string) string {
	return strings.NewReplacer("`", "", `\|`, "|").Replace(markdownLink.ReplaceAllString(cell, "$1"))
}

// described are words by which the table describes values: they are not values themselves.
const described = " text directory bucket empty value expression condition names addresses files URLs "

// word matches a value that is a word.
var word = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func words(values string) (list []string) {
	for v := range strings.SplitSeq(values, ", ") {
		if word.MatchString(v) && !strings.Contains(described, " "+v+" ") {
			list = append(list, v)
		}
	}
	return list
}
