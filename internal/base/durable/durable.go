// Package durable makes changes to a file system survive a crash of the machine.
package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncDir makes changes in a directory, such as renames, durable. It does nothing on file systems that cannot sync a
// directory.
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
