package problem

import "fmt"

// Bound says which input belongs to the points of this mesh, so that the problem has no other mesh; "" if none does. An
// initial field that gives no point its value does not count.
func (p *Problem) Bound() string {
	parts := []*part{&p.left, &p.right, &p.top, &p.bottom, &p.source, &p.fixed.part, &p.coefficient, &p.screening}
	for i := range p.transfers {
		parts = append(parts, &p.transfers[i])
	}
	if p.InitialHolds() {
		parts = append(parts, &p.initial)
	}
	for _, q := range parts {
		switch {
		case q.file != nil || q.read != nil:
			return fmt.Sprintf("%s %q is an array on this mesh", q.key, q.text)
		case q.node.indexed:
			return fmt.Sprintf("%s %q counts points", q.key, q.text)
		}
	}
	return ""
}

// InitialHolds reports whether points keep values of problem.initial.
func (p *Problem) InitialHolds() bool { return !p.fixed.none() }
