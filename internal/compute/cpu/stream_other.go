//go:build !amd64

package cpu

// streamCopy returns nil: only the runtime's copy is available.
func streamCopy() func(dst, src []byte) { return nil }
