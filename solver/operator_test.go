package solver

import (
	"fmt"
	"testing"
)

// noValues stands for rows that nothing reads.
type noValues struct{}

func (noValues) ValueRow(int, Value, []byte) error { return nil }

func TestOperatorCheck(t *testing.T) {
	for _, c := range []struct {
		op     Operator
		plain  bool
		values int
		want   string
	}{
		{Operator{}, true, 0, "<nil>"},
		{Operator{Scale: 0.5, Blend: 0.25}, false, 0, "<nil>"},
		{Operator{Scale: 0.5, Blend: 0.25, Values: noValues{}}, false, 1, "<nil>"},
		{Operator{Weighted: true, Values: noValues{}}, false, 5, "<nil>"},
		{Operator{Weighted: true}, false, 5, "operator: weighted, but without the values of points"},
		{Operator{Weighted: true, Scale: 0.5, Values: noValues{}}, false, 5,
			"operator: scale 0.5, blend 0: a weighted operator has neither"},
		{Operator{Weighted: true, Blend: 0.5, Values: noValues{}}, false, 5,
			"operator: scale 0, blend 0.5: a weighted operator has neither"},
		{Operator{Blend: 0.5}, true, 0, "operator: blend 0.5 without scale"},
		{Operator{Values: noValues{}}, true, 1, "operator: a plain average with a source"},
		{Operator{Scale: 0.6, Blend: 0.5}, false, 0,
			"operator: scale 0.6, blend 0.5: allowed are (0, 0.5] and (0, 1)"},
		{Operator{Scale: 0.1, Blend: 0.5}, false, 0, "operator: scale 0.1, blend 0.5: not float32 values"},
	} {
		got := fmt.Sprint(c.op.Check(Float32))
		if got != c.want || c.op.Plain() != c.plain || c.op.ValuesPerPoint() != c.values {
			t.Errorf("%+v: %s, plain %t, %d values; want %s, %t, %d", c.op, got, c.op.Plain(), c.op.ValuesPerPoint(),
				c.want, c.plain, c.values)
		}
	}
}
