package checkpoint

import (
	"context"
	"io"
)

// Store keeps checkpoints. A checkpoint is a set of files with a manifest; a set without one is not valid. Several
// processes may use one place at the same time, each through its own Store.
type Store interface {
	// Write creates a file of size bytes in an unsealed set. If it returns nil the file is durable; otherwise there is
	// no such file.
	Write(ctx context.Context, set, file string, size int64, write func(io.Writer) error) error
	// Size returns the size of a file in an unsealed set. The error wraps os.ErrNotExist if there is no such file.
	Size(ctx context.Context, set, file string) (int64, error)
	// Seal adds the manifest to a set, which atomically and durably makes the set valid.
	Seal(ctx context.Context, set string, manifest []byte) error
	// Sets returns the names of all sealed sets, in any order.
	Sets(ctx context.Context) ([]string, error)
	// Manifest returns the manifest of a sealed set.
	Manifest(ctx context.Context, set string) ([]byte, error)
	// Open opens the file of a part of a sealed set. A Store that downloads the file refuses one of another size.
	Open(ctx context.Context, set string, p Part) (File, error)
	// Remove removes a set, sealed or not. Removing a set that does not exist is not an error.
	Remove(ctx context.Context, set string) error
	// RemoveUnsealed removes the unsealed sets that killed runs have left. No other run may be using the place.
	RemoveUnsealed(ctx context.Context) error
	// String returns the name of the place for messages.
	String() string
}

// File is a file of a sealed set. All methods except Close may be called concurrently.
type File interface {
	io.ReaderAt
	Size() int64
	Close() error
}
