package solver

import "fmt"

// ExchangeCalls checks the order of the calls to an Exchange: Post(1), Wait(1), Post(2), Wait(2) and so on. Every
// Exchange holds one, asks it at the beginning of each call, and reports with Done that the call has succeeded. The
// zero value is ready.
type ExchangeCalls struct {
	posted, received ExchangeNumber // the newest ones; 0: none
	begun            Call           // CallPost or CallWait: the call that Done ends
}

// ExchangeOrderError reports a call to an Exchange in the wrong order.
type ExchangeOrderError struct {
	Call             Call // CallPost or CallWait
	Exchange         ExchangeNumber
	Posted, Received ExchangeNumber // the newest ones; 0: none
}

// Error names the exchanges.
func (e *ExchangeOrderError) Error() string {
	return fmt.Sprintf("%s of exchange %d is out of order: exchange %d was posted last and exchange %d received last",
		e.Call, e.Exchange, e.Posted, e.Received)
}

// Post begins a Post of exchange n. It returns an error if another call comes next.
func (c *ExchangeCalls) Post(n ExchangeNumber) error {
	if n != c.posted+1 || c.received != c.posted {
		return &ExchangeOrderError{CallPost, n, c.posted, c.received}
	}
	c.begun = CallPost
	return nil
}

// Wait begins a Wait for exchange n. It returns an error if another call comes next.
func (c *ExchangeCalls) Wait(n ExchangeNumber) error {
	if n != c.posted || n != c.received+1 {
		return &ExchangeOrderError{CallWait, n, c.posted, c.received}
	}
	c.begun = CallWait
	return nil
}

// Next returns the number of the next exchange to be posted.
func (c *ExchangeCalls) Next() ExchangeNumber { return c.posted + 1 }

// Done ends the call that was begun: it has succeeded.
func (c *ExchangeCalls) Done() {
	if c.begun == CallPost {
		c.posted++
	} else {
		c.received++
	}
}
