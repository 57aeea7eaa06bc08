package halo

// HeaderSize is the length of a frame without rows.
const HeaderSize = headerSize

// NATSFrames returns a frame of exchange 0 to e, and messages that e must refuse.
func NATSFrames(e End) (good []byte, strays [][]byte) {
	there := e.Facing()
	payload := make([]byte, there.SendBytes())
	changed := func(change func(*frame)) []byte {
		f := there.frame(kindRows, 0)
		f.total = uint64(len(payload))
		change(&f)
		msg := make([]byte, headerSize+len(payload))
		f.put(msg, payload)
		return msg
	}
	good = changed(func(*frame) {})
	damaged, version := changed(func(*frame) {}), changed(func(*frame) {})
	damaged[100] ^= 4
	version[4] = 9
	return good, [][]byte{
		[]byte("hello"),
		damaged,
		version,
		changed(func(f *frame) { f.run = testRun }),
		changed(func(f *frame) { f.sender = 7 }),
		changed(func(f *frame) { f.receiver = 7 }),
		changed(func(f *frame) { f.side = e.Side }),
		changed(func(f *frame) { f.kind = 9 }),
		changed(func(f *frame) { f.kind = kindAsk }),
		changed(func(f *frame) { f.part, f.parts = 1, 1 }),
		changed(func(f *frame) { f.kind = kindPacked }),
		changed(func(f *frame) { f.total-- }),
		changed(func(f *frame) { f.parts = 2 }),
	}
}

// NATSSubject returns the subject on which e receives frames.
func NATSSubject(o NATSOptions, e End) string { return o.subject(e.Run, "halo", e.Rank, e.Side) }

// HoldFrames keeps a link from handling frames until release is called.
func HoldFrames(l *FramedLink) (release func()) {
	l.in.mu.Lock()
	return l.in.mu.Unlock
}
