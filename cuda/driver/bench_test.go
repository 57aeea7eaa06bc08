package driver

import "testing"

// BenchmarkCall measures the cost of a call from Go to the driver and back, without the driver's own work.
func BenchmarkCall(b *testing.B) {
	s := must(fake(b).NewStream(0))(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Done(); err != nil { // not check: its Helper takes longer than the call
			b.Fatal(err)
		}
	}
}

// BenchmarkGPU measures the cost of calls to the host. A time includes the device's where the work takes the device
// longer than the host takes to queue it.
func BenchmarkGPU(b *testing.B) {
	c := bound(b, gpu(b))
	m := must(c.Load(testPTX))(b)
	f, s, h, e := must(m.Function("count"))(b), must(c.NewStream(0))(b), must(c.AllocHost(1<<13))(b),
		must(c.NewEvent(false))(b)
	p := must(c.Alloc(1 << 20))(b)
	out, first, scale := p, uint32(5), 0.5
	args := must(f.Args(&out, &first, &scale))(b)
	launch := func() error { return f.Launch(s, Dim{X: 1}, Dim{X: 32}, 0, args) }
	// The host's cost alone: the stream is held back. It takes 1,024 launches before a launch blocks the host.
	b.Run("LaunchHeld", func(b *testing.B) {
		check(b, c.Bind()) // each benchmark is a goroutine of its own
		defer c.Unbind()
		release, word, n := must(c.NewStream(0))(b), p+8192, uint32(0)
		check(b, s.Fill32(word, 0, 1))
		check(b, s.Synchronize())
		for i := 0; b.Loop(); i++ {
			if i%512 == 0 {
				b.StopTimer()
				check(b, release.WriteValue(word, n))
				check(b, s.Synchronize())
				n++
				check(b, s.WaitValue(word, n))
				b.StartTimer()
			}
			if err := launch(); err != nil {
				b.Fatal(err)
			}
		}
		check(b, release.WriteValue(word, n))
		check(b, s.Synchronize())
		check(b, release.Close())
	})
	value := uint32(0)
	for _, bench := range []struct {
		name string
		work func() error
	}{
		{"Query", func() error { _, err := s.Done(); return err }},
		{"Launch", launch},
		{"LaunchAndSynchronize", func() error {
			if err := launch(); err != nil {
				return err
			}
			return s.Synchronize()
		}},
		{"Record", func() error { return e.Record(s) }},
		{"WaitEvent", func() error { return s.Wait(e) }},
		{"WriteValue", func() error { value++; return s.WriteValue(p+4096, value) }},
		{"WaitValue", func() error { return s.WaitValue(p+4096, 0) }},
		{"Copy8K", func() error { return s.CopyFromDevice(h, 0, p, 1<<13) }},
		{"Copy2D", func() error { return s.Copy2D(h.Rows(0, 1024), p.Rows(4096), 1000, 8) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			check(b, c.Bind())
			defer c.Unbind()
			b.ReportAllocs()
			check(b, s.Fill32(p+4096, 0, 1))
			check(b, s.Synchronize())
			value = 0
			for b.Loop() {
				if err := bench.work(); err != nil {
					b.Fatal(err)
				}
			}
			check(b, s.Synchronize())
		})
	}
}
