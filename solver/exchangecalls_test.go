package solver_test

import (
	"testing"

	"jacobi/solver"
)

// The calls of an exchange alternate. The error of another call names the exchange and the newest ones.
func TestExchangeOrder(t *testing.T) {
	var c solver.ExchangeCalls
	is := func(err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c.Done()
	}
	none := " is out of order: exchange 0 was posted last and exchange 0 received last"
	is(c.Wait(1), "Wait of exchange 1"+none)
	is(c.Wait(0), "Wait of exchange 0"+none)
	is(c.Post(2), "Post of exchange 2"+none)
	if err := c.Post(1); err != nil { // fails midway, and may be tried again
		t.Fatal(err)
	}
	ok(c.Post(1))
	is(c.Post(2), "Post of exchange 2 is out of order: exchange 1 was posted last and exchange 0 received last")
	is(c.Wait(2), "Wait of exchange 2 is out of order: exchange 1 was posted last and exchange 0 received last")
	ok(c.Wait(1))
	is(c.Wait(1), "Wait of exchange 1 is out of order: exchange 1 was posted last and exchange 1 received last")
	ok(c.Post(2))
	ok(c.Wait(2))
}
