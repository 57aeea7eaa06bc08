package solver

import "fmt"

// Calls checks the calls to a backend: their order and their arguments. A backend holds one, asks it at the beginning
// of each method, and reports with Done that a call which changes the fields has succeeded. A refused call changes
// nothing. After a call that failed midway, now and next hold anything, so only Load is allowed.
//
//	Load      at any time
//	Edges     after Load, Interior and Undo
//	CopyEdge  after Edges
//	Interior  after Edges, for the same pass; without Edges, after Load, Interior and Undo
//	Sums      after Interior, for its pass, or with a Lag of 1 for the pass before; not for a pass without norms
//	SetHalo   after Interior
//	Undo      after Interior
//	CopyRows  after all of them
type Calls struct {
	backend   string // for errors
	layout    Layout
	maxSweeps int
	lag       int

	newest Call    // the newest call that changed the fields and succeeded
	begun  Call    // the call that changes the fields now, or failed to; CallNew: none
	passes [2]Pass // the newest, and the one before it
	count  int     // of passes since Load and Undo, at most 2
}

// Call is a method of a Backend, or of an Exchange within the device.
type Call uint8

// The calls. New is the state before the first Load.
const (
	CallNew Call = iota
	CallLoad
	CallEdges
	CallInterior
	CallUndo
	CallCopyEdge
	CallSums
	CallSetHalo
	CallCopyRows
	CallPost
	CallWait
)

// String returns the name of the method.
func (c Call) String() string {
	return [...]string{"New", "Load", "Edges", "Interior", "Undo", "CopyEdge", "Sums", "SetHalo", "CopyRows", "Post",
		"Wait"}[c]
}

// OrderError reports a call to a backend in the wrong order.
type OrderError struct {
	Call   Call // the call that was refused
	Of     Pass // of a call for a pass
	After  Call // the newest call that changed the fields
	Failed bool // that call failed
	Pass   Pass // the newest pass since Load; without sweeps if there is none
}

// Error names the calls and their passes.
func (e *OrderError) Error() string {
	after := e.After.String()
	if e.Failed {
		after = "a failed " + after
	}
	return fmt.Sprintf("%s%s is not allowed after %s%s", e.Call, describe(e.Of), after, describe(e.Pass))
}

func describe(p Pass) string {
	if p.Sweeps == 0 {
		return ""
	}
	return fmt.Sprintf(" of pass %d (sweeps %d to %d)", p.Index, p.First, p.First+p.Sweeps-1)
}

// NewCalls returns the Calls of a backend, which errors call by the given name.
func NewCalls(backend string, l Layout, limits Limits) Calls {
	return Calls{backend: backend, layout: l, maxSweeps: limits.MaxSweeps, lag: limits.Lag}
}

// Load begins a Load.
func (c *Calls) Load() { c.begun, c.count = CallLoad, 0 }

// Edges begins Edges of p.
func (c *Calls) Edges(p Pass) error {
	if err := c.checkPass(CallEdges, p); err != nil {
		return err
	}
	if p.Margin != 0 {
		return fmt.Errorf("%s: Edges of a pass with margin %d: 0 is wanted", c.backend, p.Margin)
	}
	if c.begun != CallNew || !c.idle() {
		return c.wrongOrder(CallEdges, p)
	}
	c.begin(CallEdges, p)
	return nil
}

// Interior begins Interior of p. edged reports whether Edges has swept a part of the pass.
func (c *Calls) Interior(p Pass) (edged bool, err error) {
	edged = c.newest == CallEdges
	if c.begun != CallNew || edged && p != c.passes[0] || !edged && !c.idle() {
		return false, c.wrongOrder(CallInterior, p)
	}
	if edged {
		c.begun = CallInterior
		return true, nil
	}
	if err := c.checkPass(CallInterior, p); err != nil {
		return false, err
	}
	c.begin(CallInterior, p)
	return false, nil
}

// Undo begins an Undo.
func (c *Calls) Undo() error {
	if c.begun != CallNew || c.newest != CallInterior {
		return c.wrongOrder(CallUndo, Pass{})
	}
	c.begun, c.count = CallUndo, 0
	return nil
}

// Done ends the Load, Edges, Interior or Undo that was begun: it has succeeded.
func (c *Calls) Done() { c.newest, c.begun = c.begun, CallNew }

// Sums checks a call of Sums.
func (c *Calls) Sums(p Pass) error {
	if c.layout.NormsOf(p) == NoNorms || c.begun != CallNew || c.newest != CallInterior ||
		!(p == c.passes[0] || c.lag > 0 && c.count > 1 && p == c.passes[1]) {
		return c.wrongOrder(CallSums, p)
	}
	return nil
}

// CopyEdge checks a CopyEdge to n bytes.
func (c *Calls) CopyEdge(side Side, n int) error {
	if err := c.Post(); err != nil {
		return c.wrongOrder(CallCopyEdge, Pass{})
	}
	return c.checkSide(CallCopyEdge, side, n)
}

// SetHalo checks a SetHalo from n bytes.
func (c *Calls) SetHalo(side Side, n int) error {
	if err := c.Wait(); err != nil {
		return c.wrongOrder(CallSetHalo, Pass{})
	}
	return c.checkSide(CallSetHalo, side, n)
}

// Post checks that edges may be sent.
func (c *Calls) Post() error {
	if c.begun != CallNew || c.newest != CallEdges {
		return c.wrongOrder(CallPost, Pass{})
	}
	return nil
}

// Wait checks that halos may be filled.
func (c *Calls) Wait() error {
	if c.begun != CallNew || c.newest != CallInterior {
		return c.wrongOrder(CallWait, Pass{})
	}
	return nil
}

// CopyRows checks a CopyRows of s to n bytes.
func (c *Calls) CopyRows(s Stripe, n int) error {
	if c.begun != CallNew || c.newest == CallNew {
		return c.wrongOrder(CallCopyRows, Pass{})
	}
	if own := c.layout.Stripe; s.Lo < own.Lo || s.Hi > own.Hi || s.Lo > s.Hi {
		return fmt.Errorf("%s: CopyRows of rows %v: the stripe is %v", c.backend, s, own)
	}
	return c.checkBytes(CallCopyRows, s, n)
}

// idle reports whether a pass may begin.
func (c *Calls) idle() bool {
	return c.newest == CallLoad || c.newest == CallInterior || c.newest == CallUndo
}

// begin begins a pass.
func (c *Calls) begin(call Call, p Pass) {
	c.begun = call
	c.passes = [2]Pass{p, c.passes[0]}
	c.count = min(c.count+1, len(c.passes))
}

func (c *Calls) checkPass(call Call, p Pass) error {
	if err := c.layout.CheckPass(p, c.maxSweeps); err != nil {
		return fmt.Errorf("%s: %s: %w", c.backend, call, err)
	}
	return nil
}

func (c *Calls) checkSide(call Call, side Side, n int) error {
	if side > Bottom || !c.layout.Neighbour[side] {
		return fmt.Errorf("%s: %s at the %v: there is no neighbour", c.backend, call, side)
	}
	return c.checkBytes(call, c.layout.Edge(side), n)
}

func (c *Calls) checkBytes(call Call, rows Stripe, n int) error {
	if want := rows.Rows() * c.layout.Mesh.RowBytes(); n != want {
		return fmt.Errorf("%s: %s with %d bytes: %d rows have %d", c.backend, call, n, rows.Rows(), want)
	}
	return nil
}

func (c *Calls) wrongOrder(call Call, p Pass) error {
	e := &OrderError{Call: call, Of: p, After: c.newest}
	if c.begun != CallNew {
		e.After, e.Failed = c.begun, true
	}
	if c.count > 0 {
		e.Pass = c.passes[0]
	}
	return fmt.Errorf("%s: %w", c.backend, e)
}
