package halo

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"jacobi/solver"
)

// smooth returns n bytes of the values of a sine.
func smooth(n int, dtype solver.DType) []byte {
	var rows []byte
	for i := 0; len(rows) < n; i++ {
		v := math.Sin(float64(i) / 500)
		if dtype == solver.Float32 {
			rows = binary.LittleEndian.AppendUint32(rows, math.Float32bits(float32(v)))
		} else {
			rows = binary.LittleEndian.AppendUint64(rows, math.Float64bits(v))
		}
	}
	return rows[:n]
}

// noise returns n bytes in which every bit pattern may occur: NaNs, infinities and denormals, too.
func noise(n int) []byte {
	r, rows := rand.New(rand.NewPCG(1, 2)), make([]byte, n)
	for i := range rows {
		rows[i] = byte(r.Uint32())
	}
	return rows
}

// Packed rows are the same bits again, whatever their length. Those of a smooth field become smaller.
func TestPacker(t *testing.T) {
	var p packer
	for _, dtype := range []solver.DType{solver.Float32, solver.Float64} {
		for _, n := range []int{1, 3, 4, 7, 8, 9, 4096, 100_003, 13} {
			for name, rows := range map[string][]byte{"smooth": smooth(n, dtype), "noise": noise(n),
				"zero": make([]byte, n)} {
				packed, got := p.pack([]byte("head"), rows, dtype), make([]byte, n)
				if err := p.unpack(got, packed[4:], dtype); err != nil || !bytes.Equal(got, rows) {
					t.Errorf("%v, %d bytes, %s: other bits (%v)", dtype, n, name, err)
				}
				if string(packed[:4]) != "head" || n > 4000 && name != "noise" && len(packed) > n*4/5 {
					t.Errorf("%v, %d bytes, %s: %d packed", dtype, n, name, len(packed))
				}
			}
		}
	}
}

// What others sent is refused without a fault, and without memory for a length that it only claims.
func TestUnpackRefuses(t *testing.T) {
	var p packer
	rows := smooth(4096, solver.Float32)
	good := p.pack(nil, rows, solver.Float32)
	longer := s2.Encode(nil, make([]byte, 8192))
	huge := append(binary.AppendUvarint(nil, 1<<31), good[2:]...)
	for _, c := range []struct {
		name   string
		packed []byte
		want   string
	}{
		{"nothing", nil, "packed rows: s2: corrupt input"},
		{"a length alone", good[:2], "packed rows: s2: corrupt input"},
		{"half", good[:len(good)/2], "packed rows: s2: corrupt input"},
		{"more behind it", append(bytes.Clone(good), 0, 1, 2), "packed rows: s2: corrupt input"},
		{"other rows", longer, "bytes of packed rows 8192, want 4096"},
		{"shorter rows", s2.Encode(nil, rows[:4000]), "bytes of packed rows 4000, want 4096"},
		{"a huge length", huge, "bytes of packed rows 2147483648, want 4096"},
		{"a length of 70 bits", bytes.Repeat([]byte{0xff}, 10), "packed rows: s2: corrupt input"},
	} {
		got := make([]byte, len(rows))
		if err := p.unpack(got, c.packed, solver.Float32); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if cap(p.planes) > 2*len(rows) {
		t.Errorf("%d bytes are reserved", cap(p.planes))
	}
}

// FuzzUnpack looks for input that ends the process.
func FuzzUnpack(f *testing.F) {
	var p packer
	f.Add(p.pack(nil, smooth(1000, solver.Float64), solver.Float64))
	f.Add([]byte{0xe8, 0x07, 0xfe, 0xff})
	f.Fuzz(func(t *testing.T, packed []byte) {
		var p packer
		rows := make([]byte, 1000)
		if err := p.unpack(rows, packed, solver.Float64); err == nil {
			var again packer
			if err := again.unpack(rows, again.pack(nil, rows, solver.Float64), solver.Float64); err != nil {
				t.Error(err)
			}
		}
	})
}

func BenchmarkPacker(b *testing.B) {
	var p packer
	for _, dtype := range []solver.DType{solver.Float32, solver.Float64} {
		rows := smooth(128<<10, dtype)
		packed := p.pack(nil, rows, dtype)
		b.Run("pack/"+dtype.String(), func(b *testing.B) {
			b.SetBytes(int64(len(rows)))
			for b.Loop() {
				packed = p.pack(packed[:0], rows, dtype)
			}
			b.ReportMetric(float64(len(rows))/float64(len(packed)), "ratio")
		})
		b.Run("unpack/"+dtype.String(), func(b *testing.B) {
			b.SetBytes(int64(len(rows)))
			for b.Loop() {
				if err := p.unpack(rows, packed, dtype); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A link that chooses by itself tries plain and packed exchanges at the start of each round.
func TestChoice(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name          string
		mode          Compress
		plain, packed time.Duration // from an exchange of the trial to the next one, but for others
		trial, after  bool          // whether packed exchanges of the trial, and later ones, are packed
		turned        bool          // and later ones of a round in which each kind takes the time of the other
	}{
		{"a slow link", CompressAuto, 10 * ms, 4 * ms, true, true, false},
		{"a fast link", CompressAuto, ms, 3 * ms, true, false, true},
		{"a gain", CompressAuto, 100 * ms, 97 * ms, true, true, false},
		{"a small gain", CompressAuto, 100 * ms, 98 * ms, true, false, false},
		{"always", CompressAlways, ms, time.Second, true, true, true},
		{"never", CompressNever, time.Second, ms, false, false, false},
		{"no choice", "", time.Second, ms, false, false, false},
	} {
		ch, now := choice{mode: c.mode}, time.Now()
		for n := range 3 * trialRound {
			at, after, plain, packed := n%trialRound, c.after, c.plain, c.packed
			if n >= 2*trialRound {
				after, plain, packed = c.turned, packed, plain
			}
			want, took := c.mode == CompressAlways, plain
			switch {
			case at >= 2*trialLength:
				want = after
			case at >= trialLength:
				want, took = c.trial, packed
			}
			switch at {
			case 0: // what the kind before has left decides nothing
				took = time.Microsecond
			case trialLength, 2, trialLength + 2: // nor does a neighbour that is late
				took = time.Minute
			case 3: // or ahead
				took -= plain / 4
			case 4:
				took += plain / 4
			}
			if got := ch.post(true, now); got != want {
				t.Fatalf("%s, exchange %d: packed %v, want %v", c.name, n, got, want)
			}
			now = now.Add(took / 2)
			if got := ch.post(false, now); at > 2*trialLength && got != after {
				t.Fatalf("%s, a smaller exchange after %d is packed %v, want %v", c.name, n, got, after)
			}
			now = now.Add(took - took/2)
		}
	}
}
