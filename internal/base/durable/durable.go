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

// Create creates a file with data in it and makes the data durable. It fails if the file exists. The file's name is
// durable after a SyncDir of its directory.
func Create(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
