package problem

import (
	"context"
	"fmt"
	"math"
)

// farthest is how many times as large as the solution may be the initial field may be: the norm is a multiple of a unit
// that follows from the largest value.
const farthest = 1 << 20

// CheckGuess refuses an initial field beside which norms of the data would vanish. data is the largest absolute value
// of walls and fixed points, and solution bounds what the source adds to them.
func (p *Problem) CheckGuess(guess, data, solution float64) error {
	if p.found == nil && p.config.Problem.Floats() {
		return nil // the data are not known yet
	}
	if most := farthest * (data + solution); guess > most && most > 0 {
		return fmt.Errorf("problem.initial %q: its largest absolute value at a point that is not fixed is %g, and the "+
			"solution is at most about %.2g; at most %.2g is allowed, because norms are multiples of a unit that "+
			"follows from the largest value", p.initial.text, guess, data+solution, most)
	}
	return nil
}

// Driven bounds what a source adds to a solution: about the source divided by the least eigenvalue, for which a factor
// of 2 leaves room. For a weighted operator no bound is known.
func (p *Problem) Driven(maxSource float64) float64 {
	if p.weighted && maxSource > 0 {
		return math.Inf(1)
	}
	if p.weighted {
		return 0
	}
	return 2 * maxSource / p.LeastEigenvalue()
}

// checkSampled is CheckGuess for the whole mesh. guess is the largest value among samples, data that of walls and
// samples, and source that of samples. If these raise a suspicion, it works out all values.
func (p *Problem) checkSampled(ctx context.Context, guess, data, source float64) error {
	hidden := data+source == 0 && p.stays() // samples may have missed all fixed points
	if guess == 0 || !hidden && p.CheckGuess(guess, data, p.Driven(source)) == nil {
		return nil
	}
	guess, data, err := p.MaxGuess(ctx, 0, p.mesh.NY)
	if err != nil {
		return err
	}
	if source, err = p.MaxSource(ctx, 0, p.mesh.NY); err != nil {
		return err
	}
	return p.CheckGuess(guess, data, p.Driven(source))
}
