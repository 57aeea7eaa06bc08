//go:build !amd64

package cpu

// streamCopy returns nil: there is no copy but the runtime's.
func streamCopy() func(dst, src []byte) { return nil }
