package study

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/durable"
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

// dropUnfinished removes from the file what an earlier study has left without a result.
func (t *Table) dropUnfinished() error {
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

// Identity is what decides the answers of a study's runs besides their own keys. A file beside the table keeps it.
type Identity struct {
	Keys  map[string]string `json:"keys"`  // that are given to all runs
	Files map[string]string `json:"files"` // SHA-256 of those that the problems read, by path; "" if it is not known
}

// IdentityFile returns the path of the file with the identity of a table's study.
func IdentityFile(table string) string { return table + ".study" }

const (
	maxIdentity = 1 << 30 // bytes; a study of a million runs may name as many files
	// hashKey stands for --hash among the keys.
	hashKey = "--hash"
)

// identity returns that of the study.
func (s *Spec) identity() Identity {
	id := Identity{Keys: s.base.Given(), Files: map[string]string{}}
	if s.hash {
		id.Keys[hashKey] = "true"
	}
	for path, in := range s.files {
		id.Files[path] = in.sum
	}
	return id
}

// replaces returns an error if runs that are done had another identity than the study has now. Values that all these
// runs have replaced by their own do not matter, and neither do files that are gone. Otherwise it returns the identity
// that is to take the place of what was; nil if that is the same.
func (s *Spec) replaces(was Identity, done map[int]bool) (*Identity, error) {
	now := s.identity()
	replaced := map[string]int{}
	for run := range done {
		for name := range s.Runs[run-1] {
			replaced[name]++
		}
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(union(was.Keys, now.Keys))) {
		before, had := was.Keys[name]
		after, has := now.Keys[name]
		if (before != after || had != has) && replaced[name] < len(done) {
			faults = append(faults, show.Text(name)+" was "+value(before, had)+" and is "+value(after, has))
		}
	}
	told := map[string]bool{}
	for _, run := range slices.Sorted(maps.Keys(done)) {
		for _, path := range s.reads(run) {
			switch {
			case s.files[path].info == nil:
				now.Files[path] = was.Files[path]
			case !told[path] && now.Files[path] != was.Files[path]:
				faults = append(faults, fmt.Sprintf("%s has other contents", show.Text(path)))
				told[path] = true
			}
		}
	}
	switch {
	case faults != nil:
		return nil, fmt.Errorf("its runs are of another study: %s", strings.Join(faults, ", "))
	case maps.Equal(was.Keys, now.Keys) && maps.Equal(was.Files, now.Files):
		return nil, nil
	}
	return &now, nil
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		return b
	}
	maps.Copy(all, b)
	return all
}

// value shows the value of a key.
func value(text string, given bool) string {
	if !given {
		return "not given"
	}
	return quoted(text)
}

// quoted returns text of others for a message.
func quoted(text string) string { return `"` + show.Text(text) + `"` }

// readIdentity reads the identity of a table's study.
func readIdentity(table string) (id Identity, err error) {
	name := filepath.Base(IdentityFile(table))
	data, err := regular.ReadFile(IdentityFile(table), maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		return id, fmt.Errorf("%s is not beside it, so it is no table of a study", name)
	}
	if err == nil && json.Unmarshal(data, &id) != nil {
		err = fmt.Errorf("%s beside it is not what a study has written", name)
	}
	return id, err
}

// write writes the identity of a table's study.
func (id Identity) write(table string) error {
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	return replace(IdentityFile(table), func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

// replace gives the file at path the contents that write writes, or leaves it as it is. It keeps the file's mode.
func replace(path string, write func(w io.Writer) error) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithPermissions(0o666),
		renameio.WithExistingPermissions())
	if err == nil {
		defer f.Cleanup() // nothing after the replacement
		err = write(f)
	}
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), reason(err))
	}
	return durable.SyncDir(dir)
}

// reason returns err without the operation and the path of a file.
func reason(err error) error {
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		return fault.Err
	}
	return err
}
