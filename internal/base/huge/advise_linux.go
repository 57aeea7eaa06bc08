package huge

import "golang.org/x/sys/unix"

func advise(memory []byte) { _ = unix.Madvise(memory, unix.MADV_HUGEPAGE) }
