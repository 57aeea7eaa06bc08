package checkpoint

import (
	"context"
	"io"
)

// Store is where checkpoints are kept. A checkpoint is a set of files with a manifest; without one it does not count.
// Several processes use one place at the same time, each through its own Store.
type Store interface {
	// Write makes a file of size bytes of a set that is not sealed. When it returns without error the file is durable;
	// with one, there is no such file.
	Write(ctx context.Context, set, file string, size int64, write func(io.Writer) error) error
	// Size returns the size of a file of a set that is not sealed; the error wraps os.ErrNotExist if it is not there.
	Size(ctx context.Context, set, file string) (int64, error)
	// Seal adds the manifest to a set and so makes it valid, at once and durably.
	Seal(ctx context.Context, set string, manifest []byte) error
	// Sets returns the names of all sealed sets, in any order.
	Sets(ctx context.Context) ([]string, error)
	// Manifest returns the manifest of a sealed set.
	Manifest(ctx context.Context, set string) ([]byte, error)
	// Open opens the file of a part of a sealed set. One that is fetched has to have the part's size.
	Open(ctx context.Context, set string, p Part) (File, error)
	// Remove removes a set, sealed or not; a set that does not exist is no error.
	Remove(ctx context.Context, set string) error
	// RemoveUnsealed removes what runs that were killed have left. No other run may be using the place.
	RemoveUnsealed(ctx context.Context) error
	// String names the place for messages.
	String() string
}

// File is a file of a sealed set. Its methods may be called by several goroutines at once, but for Close.
type File interface {
	io.ReaderAt
	Size() int64
	Close() error
}
