package study

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
)

// earlier is what the file of a table has of an earlier study.
type earlier struct {
	identity *Identity // of the study that goes on; nil if it is the same
	size     int64     // of its whole lines, in bytes; what follows was cut off
	again    []span    // its lines of runs without a result, which are done again
}

// span is a part of a file.
type span struct{ from, to int64 }

// entry is a line of a file.
type entry struct {
	number int // from 1
	at     span
	Line
	keys map[string]string // as text; Line.Keys is not set
}

const (
	maxHead  = 1 << 20  // bytes of the first line
	maxEntry = 64 << 20 // of a line of JSON
)

// goOn reads the file. It fails unless this is the table of the study.
func (t *Table) goOn(s *Spec) error {
	was, err := readIdentity(t.path)
	if err != nil {
		return fmt.Errorf("%w; name another one", err)
	}
	e := &earlier{}
	if e.size, err = wholeLines(t.file); err != nil {
		return err
	}
	read := t.readJSON
	if t.asCSV {
		read = t.readCSV
	}
	err = read(io.NewSectionReader(t.file, 0, e.size), func(l entry) error { return t.known(s, e, l) })
	if err == nil {
		e.identity, err = s.replaces(was, t.Done)
	}
	if err != nil {
		return fmt.Errorf("%w; go on with the keys and files that its runs had, or name another table", err)
	}
	t.earlier = e
	return nil
}

// wholeLines returns the size of the part of a file that ends with its last line end.
func wholeLines(f *os.File) (size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for size = info.Size(); size > 0; {
		from := max(0, size-int64(len(buf)))
		n, err := f.ReadAt(buf[:size-from], from)
		if err != nil {
			return 0, reason(err)
		}
		for ; n > 0; n-- {
			if buf[n-1] == '\n' {
				return from + int64(n), nil
			}
		}
		size = from
	}
	return 0, nil
}

// readCSV calls do with each line of a table behind its head.
func (t *Table) readCSV(r *io.SectionReader, do func(entry) error) error {
	if r.Size() == 0 {
		return nil
	}
	first, err := csv.NewReader(io.LimitReader(r, maxHead)).Read()
	if err != nil {
		return errors.New("it does not begin with the columns of a table")
	}
	head := t.head()
	for i := range max(len(head), len(first)) {
		had, has := "none", "none"
		if i < len(first) {
			had = quoted(first[i])
		}
		if i < len(head) {
			has = quoted(head[i])
		}
		if had != has {
			return fmt.Errorf("its column %d is %s, and that of this study is %s", i+1, had, has)
		}
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	lines := csv.NewReader(r)
	lines.ReuseRecord = true
	for n := 0; ; n++ {
		from := lines.InputOffset()
		l, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if broken, ok := errors.AsType[*csv.ParseError](err); ok {
			return fmt.Errorf("line %d is no line of this table: %w", broken.StartLine, broken.Err)
		}
		if err != nil {
			return reason(err)
		}
		if n == 0 {
			continue
		}
		e := entry{at: span{from, lines.InputOffset()}, keys: map[string]string{}}
		e.number, _ = lines.FieldPos(0)
		if e.Run, err = strconv.Atoi(l[0]); err != nil {
			return fmt.Errorf("line %d: run %s is no number", e.number, quoted(l[0]))
		}
		for i, name := range t.Keys {
			e.keys[name] = l[1+i]
		}
		e.Verdict = l[1+len(t.Keys)]
		if err := do(e); err != nil {
			return err
		}
	}
}

// readJSON calls do with each line of a table.
func (t *Table) readJSON(r *io.SectionReader, do func(entry) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEntry)
	var e entry
	lines.Split(func(data []byte, atEOF bool) (advance int, token []byte, err error) {
		advance, token, err = bufio.ScanLines(data, atEOF)
		e.at.to += int64(advance)
		return advance, token, err
	})
	for lines.Scan() {
		e.number++
		e.Line, e.keys = Line{}, map[string]string{}
		if err := json.Unmarshal(lines.Bytes(), &e.Line); err != nil {
			return fmt.Errorf("line %d is no line of a table", e.number)
		}
		for name, value := range e.Keys {
			e.keys[name] = valueText(whole(value))
		}
		if err := do(e); err != nil {
			return err
		}
		e.at.from = e.at.to
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d bytes", e.number+1, maxEntry)
	}
	return lines.Err()
}

// known notes a line of an earlier study.
func (t *Table) known(s *Spec, e *earlier, l entry) error {
	switch {
	case l.Run < 1 || l.Run > len(s.Runs):
		return fmt.Errorf("line %d: run %d is not one of these %d runs", l.number, l.Run, len(s.Runs))
	case t.Done[l.Run]:
		return fmt.Errorf("line %d: run %d comes twice", l.number, l.Run)
	}
	now := map[string]string{}
	for _, name := range t.Keys {
		now[name] = valueText(s.Runs[l.Run-1][name])
	}
	for _, name := range slices.Sorted(maps.Keys(union(l.keys, now))) {
		if had, has := unixLines(l.keys[name]), unixLines(now[name]); had != has {
			return fmt.Errorf("line %d: run %d had %s=%s, and now has %s", l.number, l.Run, show.Text(name),
				show.Text(had), show.Text(has))
		}
	}
	switch l.Verdict {
	case string(configs.Met), string(configs.Missed), string(configs.Done):
		t.count(l.Line)
	case Refused, Failed:
		e.again = append(e.again, l.at)
	default:
		return fmt.Errorf("line %d: %s is no verdict of a run", l.number, quoted(l.Verdict))
	}
	return nil
}

// unixLines returns text with the line ends that a reader of CSV gives it.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// settle removes from the file what an earlier study has left without a result.
func (t *Table) settle() error {
	e := t.earlier
	if e == nil {
		return nil
	}
	if e.identity != nil {
		if err := e.identity.write(t.path); err != nil {
			return err
		}
	}
	switch {
	case e.again != nil:
		if err := replace(t.path, func(w io.Writer) error { return e.copy(w, t.file) }); err != nil {
			return err
		}
		f, err := regular.OpenFile(t.path, os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		_ = t.file.Close() // of what was replaced
		t.file = f
	default:
		if err := t.file.Truncate(e.size); err != nil {
			return reason(err)
		}
	}
	t.earlier = nil
	if e.size == 0 {
		return t.begin()
	}
	return nil
}

// copy copies the lines that stay.
func (e *earlier) copy(w io.Writer, from io.ReaderAt) error {
	at := int64(0)
	for _, line := range append(e.again, span{e.size, e.size}) {
		if _, err := io.Copy(w, io.NewSectionReader(from, at, line.from-at)); err != nil {
			return reason(err)
		}
		at = line.to
	}
	return nil
}
