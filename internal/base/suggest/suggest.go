// Package suggest finds the word that a user most likely meant.
package suggest

import (
	"unicode/utf8"

	"github.com/hbollon/go-edlib"
)

// Near says whether a distance is that of a mistyped word: at most 1 mistake, and 1 more for each 4 of its letters.
func Near(word string, distance int) bool { return distance <= 1+utf8.RuneCountInString(word)/4 }

// maxWord is longer than any word that is known, in bytes.
const maxWord = 100

// Distance returns how many letters have to be put in, taken out, replaced, or exchanged with the next one, to make b
// of a. A word over maxWord is as far from any other one as it is long.
func Distance(a, b string) int {
	if longest := max(len(a), len(b)); longest > maxWord {
		return longest
	}
	return edlib.OSADamerauLevenshteinDistance(a, b)
}

// Nearest returns the first of the known words that are nearest to word. ok is false if even that one is not near.
func Nearest(word string, known []string) (nearest string, ok bool) {
	low := -1
	for _, k := range known {
		if d := Distance(word, k); low < 0 || d < low {
			nearest, low = k, d
		}
	}
	return nearest, low >= 0 && Near(word, low)
}
