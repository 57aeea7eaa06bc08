package cpu

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// Edges implements solver.Backend.
func (b *Backend) Edges(ctx context.Context, p solver.Pass) error {
	if err := b.check(p); err != nil {
		return err
	}
	b.resetSums()
	b.middle = b.layout.Middle()
	if b.sweepAll {
		b.middle = solver.Stripe{Lo: b.layout.Stripe.Hi, Hi: b.layout.Stripe.Hi}
	}
	edges := []solver.Stripe{{Lo: b.layout.Stripe.Lo, Hi: b.middle.Lo}, {Lo: b.middle.Hi, Hi: b.layout.Stripe.Hi}}
	if b.middle.Rows() == 0 {
		edges = b.split(b.layout.Stripe)
	}
	b.edged = true
	return b.sweep(ctx, p, edges)
}

// check returns an error for a pass that this backend cannot do.
func (b *Backend) check(p solver.Pass) error {
	if err := b.layout.CheckPass(p, len(b.plans)-1); err != nil {
		return fmt.Errorf("cpu backend: %w", err)
	}
	return nil
}

// Interior implements solver.Backend.
func (b *Backend) Interior(ctx context.Context, p solver.Pass) error {
	if err := b.check(p); err != nil {
		return err
	}
	rows := b.middle
	if !b.edged {
		b.resetSums()
		rows = b.layout.Reach(p.Margin)
	}
	if err := b.sweep(ctx, p, b.split(rows)); err != nil {
		return err
	}
	b.now, b.next, b.edged = b.next, b.now, false
	return nil
}

// Sums implements solver.Backend.
func (b *Backend) Sums(_ context.Context, p solver.Pass) ([]solver.Sum, error) {
	b.sums = b.sums[:0]
	for level := range p.Sweeps {
		if !b.layout.Norms.Has(p.First + level) {
			continue
		}
		var sum solver.Sum
		for _, w := range b.pool.workers {
			sum.Merge(w.sums[level].Total())
		}
		b.sums = append(b.sums, sum)
	}
	return b.sums, nil
}

// Undo implements solver.Backend.
func (b *Backend) Undo() error {
	b.now, b.next = b.next, b.now
	return nil
}

// resetSums sets the sums of a new pass to 0.
func (b *Backend) resetSums() {
	for _, w := range b.pool.workers {
		for i := range w.sums {
			w.sums[i].Reset()
		}
	}
}

// sweep computes the rows of the parts. Within the stripe parts begin and end at the bounds of norm groups.
func (b *Backend) sweep(ctx context.Context, p solver.Pass, parts []solver.Stripe) error {
	// Passes of a single sweep alternate between downward and upward, so each begins with the rows that the previous
	// one left in the cache.
	upward := p.Sweeps == 1 && p.First%2 == 1
	var jobs []job
	for _, rows := range parts {
		if rows.Rows() > 0 {
			jobs = append(jobs, job{rows: rows, right: b.columns.blocks, upward: upward, pass: p})
		}
	}
	if n := len(b.pool.workers) / max(len(jobs), 1); n > 1 {
		jobs = b.splitColumns(jobs, n)
	}
	if err := b.pool.each(len(jobs), func(w *worker, i int) error {
		return w.pass(ctx, b.plans[p.Sweeps], jobs[i])
	}); err != nil {
		return err
	}
	b.repeatColumns(parts)
	return nil
}

// repeatColumns sets the columns of next that repeat others, in the rows of the parts.
func (b *Backend) repeatColumns(parts []solver.Stripe) {
	if !b.columns.periodic && !b.columns.mirrored {
		return
	}
	for _, rows := range parts {
		for y := rows.Lo; y < rows.Hi; y++ {
			b.columns.repeat(b.next.row(y))
		}
	}
}

// splitColumns splits each job into at most n jobs side by side.
func (b *Backend) splitColumns(jobs []job, n int) []job {
	width := max(ceilDiv(b.columns.blocks, n), ceilDiv(minSplitColumns, 4*b.columns.lanes))
	var split []job
	for _, j := range jobs {
		for x := 0; x < b.columns.blocks; x += width {
			split = append(split, job{rows: j.rows, left: x, right: min(x+width, b.columns.blocks), upward: j.upward,
				pass: j.pass})
		}
	}
	return split
}

// minSplitColumns is the smallest number of columns in such a job.
const minSplitColumns = 512

// split divides rows among the threads at the bounds of norm groups. It returns at least one part.
func (b *Backend) split(rows solver.Stripe) []solver.Stripe {
	n := len(b.pool.workers)
	parts := make([]solver.Stripe, 0, n)
	lo := rows.Lo
	for i := range n {
		hi := floorMultiple(rows.Lo+rows.Rows()*(i+1)/n, solver.GroupRows)
		if i == n-1 || hi >= b.layout.Stripe.Hi {
			hi = rows.Hi // halo rows below the stripe belong to the last part, those above it to the first
		}
		if hi > max(lo, b.layout.Stripe.Lo) {
			parts = append(parts, solver.Stripe{Lo: lo, Hi: hi})
			lo = hi
		}
	}
	if len(parts) == 0 {
		parts = append(parts, rows)
	}
	return parts
}
