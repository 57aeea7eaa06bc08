package output

import (
	"crypto/sha256"
	"hash"
)

// Summed writes a partial file from its beginning to its end, and adds up its size and its hash.
type Summed struct {
	p    Partial
	done FileReport
	sum  hash.Hash
}

// NewSummed returns the writer of p, which will be called name.
func NewSummed(p Partial, name string) *Summed {
	return &Summed{p: p, done: FileReport{Name: name}, sum: sha256.New()}
}

// Write implements io.Writer.
func (s *Summed) Write(b []byte) (int, error) {
	n, err := s.p.Write(b)
	s.sum.Write(b[:n]) // never fails
	s.done.Bytes += int64(n)
	return n, err
}

// Finish makes the file durable and closes it.
func (s *Summed) Finish() (FileReport, error) {
	if err := s.p.Sync(); err != nil {
		return FileReport{}, err
	}
	s.done.SHA256 = sumOf(s.sum)
	return s.done, s.p.Close()
}
