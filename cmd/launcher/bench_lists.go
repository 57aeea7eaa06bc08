package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseList reads the value of a flag that holds distinct integers of at least 1.
func parseList(flag, text string) ([]int, error) {
	var list []int
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: %q: must be integers of at least 1, with commas between them", flag, text,
				word)
		}
		if slices.Contains(list, n) {
			return nil, fmt.Errorf("%s %q: %d stands there twice", flag, text, n)
		}
		list = append(list, n)
	}
	return list, nil
}

// upTo returns 1, 2, 4... below n, and n.
func upTo(n int) []int {
	var list []int
	for k := 1; k < n; k *= 2 {
		list = append(list, k)
	}
	return append(list, n)
}
