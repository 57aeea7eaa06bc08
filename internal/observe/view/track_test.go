package view

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

// Points are pairs, whose norms JSON carries to the last bit; null stands for what is no finite number.
func TestPointsAsJSON(t *testing.T) {
	points := []Point{{0, 0.1}, {1, 1e300}, {2, math.SmallestNonzeroFloat64}, {3, 12345678}, {1 << 40, -1e-7},
		{5, Float(math.NaN())}, {6, Float(math.Inf(1))}}
	data, err := json.Marshal(points)
	const want = "[[0,0.1],[1,1e+300],[2,5e-324],[3,1.2345678e+07],[1099511627776,-1e-07],[5,null],[6,null]]"
	if err != nil || string(data) != want {
		t.Fatalf("%s, %v, want %s", data, err, want)
	}
	var read []Point
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	points[5].Norm, points[6].Norm = 0, 0
	if !slices.Equal(read, points) {
		t.Errorf("read %v, want %v", read, points)
	}
}

// BenchmarkPoints is the JSON of a full track.
func BenchmarkPoints(b *testing.B) {
	var t Track
	for i := range 100000 {
		t.Add(i, 1/float64(i+3))
	}
	points := t.Points()
	for b.Loop() {
		if _, err := json.Marshal(points); err != nil {
			b.Fatal(err)
		}
	}
}
