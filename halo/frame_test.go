package halo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"jacobi/solver"
)

func testFrame(payload []byte) []byte {
	e := testEnd(1024, 8)
	f := e.frame(kindRows, 17)
	f.part, f.parts, f.total = 2, 5, 30
	msg := make([]byte, headerSize+len(payload))
	f.put(msg, payload)
	return msg
}

func TestFrameRoundTrip(t *testing.T) {
	payload := []byte("the rows")
	f, got, err := parseFrame(testFrame(payload))
	if err != nil {
		t.Fatal(err)
	}
	want := frame{kind: kindRows, side: solver.Bottom, dtype: solver.Float64, run: testRun, exchange: 17,
		sender: 2, receiver: 3, lo: 120, hi: 128, nx: 1024, part: 2, parts: 5, total: 30}
	if f != want {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
	if !bytes.Equal(got, payload) {
		t.Errorf("payload %q, want %q", got, payload)
	}
}

// TestFrameLayout checks the bytes of a known frame: two builds with the same frameVersion must understand each other.
func TestFrameLayout(t *testing.T) {
	msg := testFrame([]byte{1, 2, 3})
	if got, want := crc32.ChecksumIEEE(msg), uint32(0xabcc37ab); got != want {
		t.Errorf("checksum of a known frame %#08x, want %#08x: change frameVersion with the layout", got, want)
	}
}

func TestFrameOneBit(t *testing.T) {
	msg := testFrame([]byte("the rows of the halo"))
	for bit := range 8 * len(msg) {
		msg[bit/8] ^= 1 << (bit % 8)
		if _, _, err := parseFrame(msg); err == nil {
			t.Errorf("a frame with bit %d changed was accepted", bit)
		}
		msg[bit/8] ^= 1 << (bit % 8)
	}
}

func TestFrameRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(msg []byte) []byte
		want   string
	}{
		"empty":     {func([]byte) []byte { return nil }, "0 bytes, want at least 76"},
		"short":     {func(m []byte) []byte { return m[:75] }, "75 bytes, want at least 76"},
		"magic":     {func(m []byte) []byte { m[0]++; return m }, "magic 0x4f4c484b, want 0x4f4c484a"},
		"version":   {func(m []byte) []byte { m[4] = 1; return m }, "version 1, want 2"},
		"truncated": {func(m []byte) []byte { return m[:len(m)-1] }, "length 4, want 3"},
		"longer":    {func(m []byte) []byte { return append(m, 0) }, "length 4, want 5"},
	} {
		if _, _, err := parseFrame(c.change(testFrame([]byte("rows")))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestStrayFrame(t *testing.T) {
	e := testEnd(8, 8)
	there := e.Facing()
	for name, c := range map[string]struct {
		change func(*frame)
		want   string
	}{
		"run": {func(f *frame) { f.run = RunID{1} },
			"frame of run 01000000000000000000000000000000, want " + testRun.String()},
		"sender":   {func(f *frame) { f.sender = 4 }, "frame from rank 4, want 3"},
		"receiver": {func(f *frame) { f.receiver = 4 }, "frame to rank 4, want 2"},
		"side":     {func(f *frame) { f.side = solver.Bottom }, "frame from side 1, want 0"},
	} {
		f := there.frame(kindRows, 0)
		if err := e.addressed(&f); err != nil {
			t.Fatal(err)
		}
		c.change(&f)
		if err := e.addressed(&f); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestPartOf(t *testing.T) {
	for _, c := range []struct {
		part, parts      uint32
		n, total, offset int
		ok               bool
	}{
		{0, 1, 24, 24, 0, true},
		{0, 1, 0, 0, 0, true},  // no rows
		{1, 2, 0, 0, 0, false}, // a part beyond them
		{2, 3, 2, 10, 8, true},
		{2, 3, 4, 10, 0, false},       // longer than what is left
		{5, 6, 2, 10, 0, false},       // begins at the end
		{3, 3, 2, 10, 0, false},       // no such part
		{0, 0, 10, 10, 0, false},      // no parts
		{0, 1 << 31, 1, 10, 0, false}, // would take too much memory
	} {
		f := frame{part: c.part, parts: c.parts, total: uint64(c.total)}
		got, _, err := partOf(&f, c.n)
		if (err == nil) != c.ok || c.ok && got != c.offset {
			t.Errorf("part %d of %d, %d bytes of %d: %d, %v", c.part, c.parts, c.n, c.total, got, err)
		}
	}
}

// TestOutboxParts checks that the receiver puts every part where the sender took it from.
func TestOutboxParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		e := testEnd(1+r.IntN(40), 1+r.IntN(8))
		there := e.Facing()
		var o outbox
		if err := o.init(&e, headerSize+1+r.IntN(300), 1+r.IntN(3)); err != nil {
			t.Fatal(err)
		}
		rows := make([]byte, r.IntN(e.SendBytes()+1))
		for i := range rows {
			rows[i] = byte(r.Uint32())
		}
		got := make([]byte, len(rows))
		if err := o.publish(o.keep(5, rows, false), nil, func(msg []byte) error {
			f, payload, err := parseFrame(msg)
			if err != nil {
				return err
			}
			at, _, err := partOf(&f, len(payload))
			copy(got[at:], payload)
			return errors.Join(err, there.agrees(&f))
		}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, rows) {
			t.Fatalf("%d bytes in parts of %d differ", len(rows), o.most)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(testFrame(nil))
	f.Add(testFrame([]byte("rows")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		// With a correct checksum the fuzzer gets past the check of it.
		msg := bytes.Clone(data)
		if len(msg) >= headerSize {
			crc := crc32.Update(crc32.Checksum(msg[:crcAt], castagnoli), castagnoli, msg[headerSize:])
			binary.LittleEndian.PutUint32(msg[crcAt:], crc)
		}
		for _, m := range [][]byte{data, msg} {
			fr, payload, err := parseFrame(m)
			if err != nil {
				continue
			}
			again := make([]byte, len(m))
			fr.put(again, payload)
			if !bytes.Equal(again, m) {
				t.Fatalf("decoded and encoded again:\n%x\nwant\n%x", again, m)
			}
			e := testEnd(3, 2)
			if e.addressed(&fr) == nil && e.agrees(&fr) == nil {
				if at, n, err := partOf(&fr, len(payload)); err == nil && at+n > e.RecvBytes() {
					t.Fatalf("part at %d with %d bytes, of %d", at, len(payload), e.RecvBytes())
				}
			}
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	payload := make([]byte, 64<<10)
	msg := make([]byte, headerSize+len(payload))
	e := testEnd(1024, 8)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		f := e.frame(kindRows, 1)
		f.put(msg, payload)
		if _, _, err := parseFrame(msg); err != nil {
			b.Fatal(err)
		}
	}
}
