//go:build !amd64

package cpu

func simdFamilies() []family { return nil }
