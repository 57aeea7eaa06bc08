package rank

import (
	"encoding/json"
	"testing"
	"time"

	"jacobi/halo"
	"jacobi/internal/run/method"
)

const ms = time.Millisecond

// What a meter counts becomes the parts of the way, in seconds. Of 4 exchanges one was lost, and counts as the others.
func TestTrafficReport(t *testing.T) {
	split := halo.Split{Exchanges: 3, Frame: 6 * ms, Unframe: 3 * ms, Turn: -12 * ms}
	counted := halo.Traffic{Exchanges: 4, Bytes: 4096, CopyOut: 10 * ms, Send: 20 * ms, Wait: 30 * ms, CopyIn: 40 * ms,
		Travel: 150 * ms, Hidden: 100 * ms, Split: split}
	local := counted
	local.Travel, local.Hidden, local.Split = 0, 0, halo.Split{}
	waits := counted
	waits.Wait, waits.Hidden = time.Second, 0
	const times = `{"exchanges":4,"bytes":4096,"copy_out_seconds":0.01,"send_seconds":0.02,`
	for _, c := range []struct {
		name     string
		traffic  halo.Traffic
		sweeping bool
		want     string
	}{
		{"no exchange", halo.Traffic{}, true, "null"},
		{"a network", counted, true, times + `"wait_seconds":0.03,"copy_in_seconds":0.04,"frame_seconds":0.008,` +
			`"unframe_seconds":0.004,"turn_seconds":-0.016,"travel_seconds":0.2,"hidden":0.5}`},
		{"no sweep meanwhile", waits, true, times + `"wait_seconds":1,"copy_in_seconds":0.04,"frame_seconds":0.008,` +
			`"unframe_seconds":0.004,"turn_seconds":-0.016,"travel_seconds":0.2,"hidden":0}`},
		{"a GPU", counted, false, times + `"wait_seconds":0.03,"copy_in_seconds":0.04,"frame_seconds":0.008,` +
			`"unframe_seconds":0.004,"turn_seconds":-0.016,"travel_seconds":0.2}`},
		{"shared memory", local, true, times + `"wait_seconds":0.03,"copy_in_seconds":0.04}`},
	} {
		got, err := json.Marshal(trafficReport(c.traffic, c.sweeping))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

// Over peer memory nobody knows how long rows travel.
func TestPeerTraffic(t *testing.T) {
	for exchanges, want := range map[uint64]string{0: "null", 3: `{"exchanges":3,"bytes":38400}`} {
		moved := method.Traffic{Exchanges: exchanges, Sent: 19200, Received: 19200}
		if got, err := json.Marshal(peerTraffic(moved)); err != nil || string(got) != want {
			t.Errorf("%d exchanges: %s, %v; want %s", exchanges, got, err, want)
		}
	}
}
