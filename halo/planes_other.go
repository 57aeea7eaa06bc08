//go:build !amd64

package halo

func divideEights32(_, _ []byte, n int) int { return min(eight, n) }
func joinEights32(_, _ []byte, _ int) int   { return 0 }
func divideEights64(_, _ []byte, n int) int { return min(eight, n) }
func joinEights64(_, _ []byte, _ int) int   { return 0 }
