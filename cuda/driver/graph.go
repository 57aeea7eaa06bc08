package driver

import "unsafe"

// Graph is work captured from a stream. It can be launched many times, each time at the cost of one launch.
type Graph struct {
	driver *Driver
	handle uintptr
}

// Capture records the work that the function work puts into the stream, instead of doing it. It includes the work of
// other streams that wait for events of s and for which s waits in turn.
func (s *Stream) Capture(work func() error) (*Graph, error) {
	const threadLocal = 1 // other threads may call functions that are illegal during a capture
	if err := s.driver.call(&s.driver.api.streamBeginCapture, s.handle, threadLocal); err != nil {
		return nil, err
	}
	failed := work()
	var captured uintptr
	err := s.driver.call(&s.driver.api.streamEndCapture, s.handle, uintptr(unsafe.Pointer(&captured)))
	if captured != 0 {
		defer func() { _ = s.driver.call(&s.driver.api.graphDestroy, captured) }()
	}
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	g := &Graph{driver: s.driver}
	if err := g.driver.call(&g.driver.api.graphInstantiate, uintptr(unsafe.Pointer(&g.handle)), captured,
		0); err != nil {
		return nil, err
	}
	return g, nil
}

// Launch puts the captured work into the stream.
func (g *Graph) Launch(s *Stream) error {
	return g.driver.do(&g.driver.api.graphLaunch, g.handle, s.handle)
}

// Close frees the graph.
func (g *Graph) Close() error { return g.driver.call(&g.driver.api.graphExecDestroy, g.handle) }
