package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Hash returns the SHA-256, in hexadecimal, of the keys on which all ranks of a run must agree: all keys but these.
//   - run.name is a title.
//   - device: ranks of one run may use different backends and numbers of threads; the bits are the same.
//   - nats: nodes may reach the same servers under different names and keep their credentials in different places.
//   - halo.direct.listen: nodes may have other networks and other free ports.
//   - output.dir: nodes may see the same directory at different paths. The file names do count, since all ranks write
//     one field.
//   - checkpoint.dir and checkpoint.resume, for the same reason.
//   - metrics: one process serves them, wherever it runs.
//   - view: rank 0 alone serves the page, and it changes nothing.
//   - log: messages of a rank do not affect its results.
func Hash(c Config) string {
	h := sha256.New()
	fmt.Fprintln(h, "jacobi configuration 1")
	for _, k := range keys() {
		section, _, _ := strings.Cut(k.name, ".")
		if slices.Contains([]string{"device", "nats", "metrics", "view", "log"}, section) ||
			slices.Contains([]string{"run.name", "halo.direct.listen", "output.dir", "checkpoint.dir",
				"checkpoint.resume"}, k.name) {
			continue
		}
		fmt.Fprintf(h, "%s=%q\n", k.name, k.text(c))
	}
	return hex.EncodeToString(h.Sum(nil))
}
