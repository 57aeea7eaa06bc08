package driver

import (
	"testing"

	"jacobi/cuda/driver/drivertest"
)

// bound returns the context of d's first device, bound to the test's thread.
func bound(t testing.TB, d *Driver) *Context {
	t.Helper()
	devices := must(d.Devices())(t)
	c := must(devices[0].Retain(ScheduleAuto))(t)
	check(t, c.Bind())
	t.Cleanup(func() {
		check(t, c.Unbind())
		check(t, c.Close())
	})
	return c
}

// fake returns the bound context of a fake driver.
func fake(t testing.TB, macros ...string) *Context {
	t.Helper()
	return bound(t, must(open(drivertest.Build(t, macros...)))(t))
}

// must returns a function that returns v, or ends the test if err is not nil.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkError fails the test unless err matches target and has the given text.
func checkError(t testing.TB, err, target error, text string) {
	t.Helper()
	if !isError(err, target) || err.Error() != text {
		t.Errorf("got error\n%v\nwant, as %v,\n%s", err, target, text)
	}
}
