package problem

// An expression may have hundreds of conditions, of which few matter in a small part of the plane. There a node leaves
// out those that are decided, and what they do not choose: its values stay the same, bit by bit, and take less time.

// within returns the node as it is in a box, and its bounds there.
func (n node) within(b box) (node, bounds) {
	out, limit := n, bounds{}
	if n.narrow == nil {
		limit = n.limit(b)
	} else {
		out, limit = n.narrow(b)
	}
	if n.isBool && limit.decided() {
		out = constant(limit.lo)
	}
	out.isBool = n.isBool
	return out, limit
}

// mayJump reports whether the node may jump where it has these bounds.
func (n node) mayJump(limit bounds) bool { return limit.jumps || n.isBool && !limit.decided() }

// narrowing1 and narrowing2 return the narrow of a node that rebuild makes of its operands: nil if they are the same in
// each box.

func narrowing1(rebuild func(a node) node, limit func(bounds) bounds, a node) func(box) (node, bounds) {
	if a.narrow == nil {
		return nil
	}
	return func(x box) (node, bounds) {
		inner, bounds := a.within(x)
		return rebuild(inner), limit(bounds)
	}
}

func narrowing2(rebuild func(a, b node) node, limit func(a, b bounds) bounds, a, b node) func(box) (node, bounds) {
	if a.narrow == nil && b.narrow == nil {
		return nil
	}
	return func(x box) (node, bounds) {
		first, one := a.within(x)
		second, other := b.within(x)
		return rebuild(first, second), limit(one, other)
	}
}

// logical returns a and b, or else a or b: f of them, of which the neutral one has no effect.
func logical(f func(a, b float64) float64, limit func(a, b bounds) bounds, neutral float64, a, b node) node {
	n := compared(apply2(f, limit, a, b))
	n.narrow = func(x box) (node, bounds) {
		first, one := a.within(x)
		second, other := b.within(x)
		switch {
		case one.decided() && one.lo == neutral:
			return second, other
		case other.decided() && other.lo == neutral:
			return first, one
		}
		return logical(f, limit, neutral, first, second), limit(one, other)
	}
	return n
}
