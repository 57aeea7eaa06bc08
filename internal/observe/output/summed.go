package output

import (
	"crypto/sha256"
	"hash"
)

// Summed writes a file from its beginning to its end, and adds up its size and its hash.
type Summed struct {
	f    File
	done FileReport
	sum  hash.Hash
}

// NewSummed returns the writer of f, which is called name.
func NewSummed(f File, name string) *Summed {
	return &Summed{f: f, done: FileReport{Name: name}, sum: sha256.New()}
}

// Write implements io.Writer.
func (s *Summed) Write(b []byte) (int, error) {
	n, err := s.f.WriteAt(b, s.done.Bytes)
	s.sum.Write(b[:n]) // never fails
	s.done.Bytes += int64(n)
	return n, err
}

// Finish makes the file durable and closes it. If it fails because the disk is full, it can be called again.
func (s *Summed) Finish() (FileReport, error) {
	if err := s.f.Sync(); err != nil {
		return FileReport{}, err
	}
	s.done.SHA256 = sumOf(s.sum)
	return s.done, s.f.Close()
}
