package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// RankBinary is the name of the program that the launcher starts for each rank.
const RankBinary = "jacobi-rank"

// FindRankBinary returns the path of RankBinary. It looks in the directory of the running executable, then on PATH.
func FindRankBinary() (string, error) {
	self, err := Self()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", RankBinary, err)
	}
	return findBinary(RankBinary, filepath.Dir(self))
}

// Self returns the path of the running executable, without symbolic links.
func Self() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	return self, nil
}

func findBinary(name, dir string) (string, error) {
	if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: neither beside the launcher in %s nor on PATH (%s)", name, dir,
			os.Getenv("PATH"))
	}
	return filepath.Abs(path)
}
