package cpu

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages. A system that gives none is slower, not wrong, so its answer does not matter.
func adviseHuge(m memory) { _ = unix.Madvise(m, unix.MADV_HUGEPAGE) }
