// Package ballast makes the garbage collector of a process with a small heap run less often.
package ballast

// Size is the size of a ballast in bytes. More than this would not stay in the caches of a processor.
const Size = 16 << 20

// New returns memory that nobody uses. While a process keeps it, the collector runs after at least Size bytes of
// garbage; in a small heap it would run after 4 MiB, which the messages of a few exchanges of rows fill. The memory
// takes addresses alone: the system gives pages only when they are written to.
func New() []byte { return make([]byte, Size) }
