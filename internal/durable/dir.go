// Package durable makes changes of a file system outlive a crash of the machine.
package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncDir makes what was done in a directory, renames above all, durable on file systems that know how to.
func SyncDir(path string) error {
	d, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
