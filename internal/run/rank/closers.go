package rank

import (
	"errors"

	"go.uber.org/zap"

	"jacobi/cuda/driver"
)

// closers close what the phases of a rank have opened. A phase that fails leaves its part to them, because the other
// ranks have to know of the failure before they see this rank's connections and memory go.
type closers struct {
	log   *zap.Logger
	funcs []func() error // in the order of opening
}

// add enters f, which closes what was opened last.
func (c *closers) add(f func() error) { c.funcs = append(c.funcs, f) }

// close closes everything, newest first. It does not report errors that follow from a lost CUDA context, which every
// call returns and which has been reported.
func (c *closers) close() { c.closeTo(0) }

// closeTo is close for all but the first n.
func (c *closers) closeTo(n int) {
	for i := len(c.funcs) - 1; i >= n; i-- {
		if err := c.funcs[i](); err != nil && !errors.Is(err, driver.ErrContextLost) {
			c.log.Warn("close", zap.Error(err))
		}
	}
	c.funcs = c.funcs[:n]
}
