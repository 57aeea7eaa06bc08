package rank

import (
	"time"

	"jacobi/halo"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/method"
)

// trafficReport returns what went through a link; nil if nothing did. sweeping says that the rank itself sweeps, so
// that what it does not wait for is hidden behind its sweeps.
func trafficReport(t halo.Traffic, sweeping bool) *output.TrafficReport {
	if t.Exchanges == 0 {
		return nil
	}
	rep := &output.TrafficReport{Exchanges: t.Exchanges, Bytes: t.Bytes, LinkTime: &output.LinkTime{
		CopyOut: t.CopyOut.Seconds(), Send: t.Send.Seconds(), Wait: t.Wait.Seconds(), CopyIn: t.CopyIn.Seconds()}}
	if t.Travel == 0 || t.Split.Exchanges == 0 {
		return rep
	}
	// Of an exchange that a broken connection has lost not all times are known. It counts as the mean of the others.
	all := func(d time.Duration) float64 {
		return d.Seconds() * float64(t.Exchanges) / float64(t.Split.Exchanges)
	}
	rep.WayTime = &output.WayTime{Frame: all(t.Split.Frame), Unframe: all(t.Split.Unframe), Turn: all(t.Split.Turn),
		Travel: (t.CopyOut + t.Travel + t.CopyIn).Seconds()}
	if sweeping {
		rep.Hidden = new(t.Hidden.Seconds() / rep.Travel)
	}
	return rep
}

// peerTraffic returns what went over peer memory; nil if nothing did.
func peerTraffic(t method.Traffic) *output.TrafficReport {
	if t.Exchanges == 0 {
		return nil
	}
	return &output.TrafficReport{Exchanges: t.Exchanges, Bytes: t.Sent + t.Received}
}
