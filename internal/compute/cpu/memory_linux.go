package cpu

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages. Without them a run is slower but still right, so an error does not matter.
func adviseHuge(m memory) { _ = unix.Madvise(m, unix.MADV_HUGEPAGE) }
