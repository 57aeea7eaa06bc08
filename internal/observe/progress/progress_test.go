package progress

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Norms arrive in order and complete, many at a time or after a while.
func TestRecorderHandsOverInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []float64
		var firsts []int
		r := NewRecorder(func(first int, norms []float64) error {
			firsts = append(firsts, first)
			got = append(got, norms...)
			return nil
		})
		var want []float64
		add := func(n int) {
			norms := make([]float64, n)
			for i := range norms {
				norms[i] = float64(len(want) + i)
			}
			if err := r.Add(t.Context(), len(want), norms); err != nil {
				t.Fatal(err)
			}
			want = append(want, norms...)
		}
		add(5)
		add(11)
		add(recordNorms)
		synctest.Wait()
		if len(got) != recordNorms+16 {
			t.Errorf("%d norms were handed over, want %d", len(got), recordNorms+16)
		}
		add(3)
		time.Sleep(recordInterval)
		add(4)
		add(5)
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d norms, want %d in their order", len(got), len(want))
		}
		if want := []int{0, 5, recordNorms + 16, recordNorms + 23}; !slices.Equal(firsts, want) {
			t.Errorf("first sweeps %v, want %v", firsts, want)
		}
	})
}

// An error of the history ends the run at the next norms, or at the end.
func TestRecorderReturnsTheError(t *testing.T) {
	full := errors.New("disk full")
	for name, end := range map[string]func(r *Recorder) error{
		"later norms": func(r *Recorder) error {
			<-r.done
			for range recordAhead + 1 { // the channel has room for some
				if err := r.Add(t.Context(), 0, make([]float64, recordNorms)); err != nil {
					return err
				}
			}
			return nil
		},
		"end": func(r *Recorder) error { return r.Close(t.Context()) },
	} {
		r := NewRecorder(func(int, []float64) error { return full })
		if err := r.Add(t.Context(), 0, make([]float64, recordNorms)); err != nil {
			t.Errorf("%s: the first norms: %v", name, err)
		}
		if err := end(r); !errors.Is(err, full) {
			t.Errorf("%s: %v, want %v", name, err, full)
		}
		_ = r.Close(t.Context())
	}
}

// A history that blocks does not keep the run from ending.
func TestRecorderHeedsTheContext(t *testing.T) {
	block := make(chan struct{})
	r := NewRecorder(func(int, []float64) error { <-block; return nil })
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	var err error
	for range recordAhead + 2 {
		err = errors.Join(err, r.Add(ctx, 0, make([]float64, recordNorms)))
	}
	if !errors.Is(err, interrupted) {
		t.Errorf("%v, want %v", err, interrupted)
	}
	close(block)
	_ = r.Close(ctx)
}
