package aggregation

// begin does the first sweep for the right-hand side a, from 0.
func begin(t *task, lo, hi int) {
	b, inverse, to := t.a[lo:hi], t.Inverse[lo:hi], t.to[lo:hi]
	for i, v := range b {
		to[i] = weight * float64(inverse[i]*v)
	}
}

// sweep does a sweep from a for the right-hand side b.
func sweep(t *task, lo, hi int) {
	residuals(t, lo, hi)
	x, inverse, to := t.a[lo:hi], t.Inverse[lo:hi], t.to[lo:hi]
	for i, r := range to {
		to[i] = x[i] + float64(weight*float64(inverse[i]*r))
	}
}

// residuals sets to to the residuals of a for the right-hand side b.
func residuals(t *task, lo, hi int) { t.residuals(t.to[lo:hi], t.b[lo:hi], t.a, t.faces[lo:hi], lo) }

// residuals sets r to b - A x of the unknowns of a chunk, which begin with lo, in an order by length. It does four with
// as many faces at a time: a processor adds those of one while it waits for those of another.
func (l *Level) residuals(r, b, x []float64, order []uint16, lo int) {
	own, excess, begin := x[lo:][:len(r)], l.Excess[lo:][:len(r)], l.Begin[lo:][:len(r)+1]
	all, faces := l.Neighbour, l.Face
	start := func(k uint16) (sum, v float64) { return b[k] - float64(float64(excess[k])*own[k]), own[k] }
	for len(order) > 0 {
		i := order[0]
		n := begin[i+1] - begin[i]
		si, vi := start(i)
		ti, fi := all[begin[i]:][:n], faces[begin[i]:][:n]
		if len(order) < 4 || begin[order[3]+1]-begin[order[3]] != n {
			for f, t := range ti {
				si += float64(float64(fi[f]) * (x[t] - vi))
			}
			r[i], order = si, order[1:]
			continue
		}
		j, k, m := order[1], order[2], order[3]
		sj, vj := start(j)
		sk, vk := start(k)
		sm, vm := start(m)
		tj, tk, tm := all[begin[j]:][:n], all[begin[k]:][:n], all[begin[m]:][:n]
		fj, fk, fm := faces[begin[j]:][:n], faces[begin[k]:][:n], faces[begin[m]:][:n]
		for f, t := range ti {
			si += float64(float64(fi[f]) * (x[t] - vi))
			sj += float64(float64(fj[f]) * (x[tj[f]] - vj))
			sk += float64(float64(fk[f]) * (x[tk[f]] - vk))
			sm += float64(float64(fm[f]) * (x[tm[f]] - vm))
		}
		r[i], r[j], r[k], r[m], order = si, sj, sk, sm, order[4:]
	}
}

// restrict adds the residuals a over the sets of the next level, and does the first sweep there.
func restrict(t *task, lo, hi int) {
	y, inverse := t.next.y, t.next.Inverse
	for _, k := range t.sets[lo:hi] {
		i := lo + int(k)
		sum := 0.0
		for _, m := range t.Members[t.First[i]:t.First[i+1]] {
			sum += t.a[m]
		}
		t.to[i] = sum
		y[i] = weight * float64(inverse[i]*sum)
	}
}

// correct adds the solution a of the next level.
func correct(t *task, lo, hi int) {
	to := t.to[lo:hi]
	for i, set := range t.Set[lo:hi] {
		if set >= 0 {
			to[i] += t.a[set]
		}
	}
}

// product sets v to A x of the unknowns of a chunk.
func (w *vectors) product(v, x []float64, lo int) {
	var zero [chunk]float64
	w.residuals(v, zero[:len(v)], x, w.faces[lo:lo+len(v)], lo)
	for i, r := range v {
		v[i] = 0 - r
	}
}

// firstStep sets to to A a, and sums to those of a A a, a b and b b.
func firstStep(t *task, lo, hi int) {
	a, b, v := t.a[lo:hi], t.b[lo:hi], t.to[lo:hi]
	t.product(v, t.a, lo)
	t.sums[0][lo/chunk], t.sums[1][lo/chunk], t.sums[2][lo/chunk] = dot(a, v), dot(a, b), dot(b, b)
}

// reduce sets r to a - p b, sums to that of r r, and does the first sweep for r.
func reduce(t *task, lo, hi int) {
	r, b, y, inverse := t.to[lo:hi], t.b[lo:hi], t.y[lo:hi], t.Inverse[lo:hi]
	for i, a := range t.a[lo:hi] {
		r[i] = a - float64(t.p*b[i])
		y[i] = weight * float64(inverse[i]*r[i])
	}
	t.sums[0][lo/chunk] = dot(r, r)
}

// secondStep sets to to A a, and sums to those of a A a, a v and a b.
func secondStep(t *task, lo, hi int) {
	a, b, v := t.a[lo:hi], t.b[lo:hi], t.to[lo:hi]
	t.product(v, t.a, lo)
	t.sums[0][lo/chunk], t.sums[1][lo/chunk], t.sums[2][lo/chunk] = dot(a, v), dot(a, t.v[lo:hi]), dot(a, b)
}

// scale multiplies by p.
func scale(t *task, lo, hi int) {
	to := t.to[lo:hi]
	for i := range to {
		to[i] *= t.p
	}
}

// combine sets to to p to + q a.
func combine(t *task, lo, hi int) {
	to := t.to[lo:hi]
	for i, a := range t.a[lo:hi] {
		to[i] = float64(t.p*to[i]) + float64(t.q*a)
	}
}

// multiply sets to to the product of a matrix and b.
func multiply(t *task, lo, hi int) {
	for i := lo; i < hi; i++ {
		sum := 0.0
		for j, v := range t.a[i*t.n : (i+1)*t.n] {
			sum += float64(v * t.b[j])
		}
		t.to[i] = sum
	}
}

// Chunk is the number of unknowns of a chunk.
const Chunk = 1024

// A scalar product is added in chunks of unknowns. A chunk has lanes partial sums, of every lanes'th product in
// ascending order from +0; they are halved until one is left, the first half plus the second one. The sums of chunks
// are added in the same way.
const chunk, lanes = Chunk, 256

// dot returns the sum of a chunk.
func dot(a, b []float64) float64 {
	var part [lanes]float64
	for len(a) > 0 {
		n := min(len(a), lanes)
		to, u, v := part[:n], a[:n], b[:n]
		for i := range to {
			to[i] += float64(u[i] * v[i])
		}
		a, b = a[n:], b[n:]
	}
	return halve(&part)
}

// total returns the sum of the sums of chunks.
func total(sums []float64) float64 {
	var part [lanes]float64
	for i, v := range sums {
		part[i%lanes] += v
	}
	return halve(&part)
}

func halve(part *[lanes]float64) float64 {
	for n := lanes / 2; n > 0; n /= 2 {
		for i := range n {
			part[i] += part[i+n]
		}
	}
	return part[0]
}
