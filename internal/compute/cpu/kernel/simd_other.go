//go:build !amd64

package kernel

func simdFamilies() []family { return nil }
