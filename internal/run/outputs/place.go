package outputs

import (
	"errors"
	"strings"
	"sync"

	"go.uber.org/zap"

	"jacobi/internal/observe/farfiles"
	"jacobi/internal/observe/output"
)

// made is a Place that knows which files this rank has had created there and not put in place.
type made struct {
	output.Place
	mu    sync.Mutex // a series puts its files in place in the background
	files map[string][]output.File
}

// Create implements output.Place.
func (m *made) Create(name string, size int64) (output.File, error) {
	f, err := m.Place.Create(name, size)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		whole, _, _ := strings.Cut(name, "/")
		m.files[whole] = append(m.files[whole], f)
	}
	return f, err
}

// Remove implements output.Place.
func (m *made) Remove(name string) error {
	m.forget(name)
	return m.Place.Remove(name)
}

// Put implements output.Place.
func (m *made) Put(name string) error {
	m.forget(name)
	return m.Place.Put(name)
}

// Commit implements output.Place. What is complete stays, even if it cannot be put in place.
func (m *made) Commit(names []string) error {
	m.forget(names...)
	return m.Place.Commit(names)
}

func (m *made) forget(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.files, name)
	}
}

// abort removes the files.
func (m *made) abort() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, files := range m.files {
		for _, f := range files {
			_ = f.Close() // it may be closed
		}
		err = errors.Join(err, m.Place.Remove(name))
	}
	clear(m.files)
	return err
}

// findPlace determines where the files go. The launcher holds output.dir; without a launcher rank 0 does. A rank that
// sees that directory writes to it directly, any other rank writes over NATS.
func (o *Outputs) findPlace() error {
	c := o.Config.Output
	if o.Many {
		c.Probes = "" // their values are in the report
	}
	if len(c.Names()) == 0 {
		return nil
	}
	var place output.Place
	if o.id.Rank == 0 && !o.Launched {
		if err := o.hold(); err != nil {
			return err
		}
		place = o.held
	} else {
		far, err := farfiles.Find(o.Comm.Context(), o.Conn, o.id.RunID, c.Dir, o.Timeout)
		if err != nil {
			return err
		}
		if o.id.Rank == 0 && !far.Near() {
			o.Log.Info("outputs go over NATS", zap.String("to", far.Host()))
		}
		place = far
	}
	o.place = &made{Place: place, files: map[string][]output.File{}}
	return nil
}

// hold locks output.dir for this run, and lets the other ranks write there.
func (o *Outputs) hold() error {
	c := o.Config.Output
	if err := errors.Join(output.CheckDir(c.Dir), output.CheckNames(c)); err != nil {
		return err
	}
	held, notes, err := output.Hold(c, o.id.RunID)
	if err != nil {
		return err
	}
	o.held = held
	o.OnClose(held.Close)
	for _, note := range append(notes, held.Replace()) {
		if note != "" {
			o.Log.Info(note)
		}
	}
	if o.Conn == nil {
		return nil
	}
	stop, err := farfiles.Serve(farfiles.Options{Conn: o.Conn, RunID: o.id.RunID, Dir: held, Log: o.Log})
	if err != nil {
		return err
	}
	o.OnClose(func() error { stop(); return nil })
	return nil
}
