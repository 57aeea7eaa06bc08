// Package suggest finds the word that a user most likely meant.
package suggest

import "unicode/utf8"

// Near says whether a distance is that of a mistyped word: at most 1 mistake, and 1 more for each 4 of its letters.
func Near(word string, distance int) bool { return distance <= 1+utf8.RuneCountInString(word)/4 }

// Distance returns how many letters have to be put in, taken out, replaced, or exchanged with the next one, to make b
// of a.
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	// Rows of the table of distances between the beginnings of both: that of i letters of from, and those before it.
	var twoBefore, before []int
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		twoBefore, before, row = before, row, make([]int, len(to)+1)
		row[0] = i + 1
		for j := range to {
			replaced := before[j]
			if from[i] != to[j] {
				replaced++
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, replaced)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				row[j+1] = min(row[j+1], twoBefore[j-1]+1)
			}
		}
	}
	return row[len(to)]
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
