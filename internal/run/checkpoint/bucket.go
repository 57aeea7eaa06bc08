package checkpoint

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bucket is a Store in a bucket of JetStream's object store, for nodes that share no file system. An object is called
// SET/FILE and appears when it is complete. Objects are not encrypted: every client that may read the bucket can read
// the field.
type Bucket struct {
	name    string
	objects jetstream.ObjectStore
	stream  jetstream.Stream // holds the objects
}

const (
	// bucketTimeout bounds a request to JetStream. The transfer of an object may take one second more for each
	// minBucketRate bytes.
	bucketTimeout = 30 * time.Second
	minBucketRate = 10 << 20
)

// OpenBucket returns the store in a bucket, which it creates if it does not exist.
func OpenBucket(ctx context.Context, conn *nats.Conn, name string) (_ *Bucket, err error) {
	defer func() {
		if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, nats.ErrNoResponders) {
			err = errors.New("the NATS server has no JetStream: it is started with -js, or checkpoint.dir is used " +
				"instead")
		}
		if err != nil {
			err = fmt.Errorf("bucket %q: %w", name, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	objects, err := js.ObjectStore(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		objects, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name,
			Description: "checkpoints of jacobi"})
		if errors.Is(err, jetstream.ErrBucketExists) { // another rank was faster
			objects, err = js.ObjectStore(ctx, name)
		}
	}
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, "OBJ_"+name)
	return &Bucket{name, objects, stream}, err
}

// String returns "nats:" and the name.
func (b *Bucket) String() string { return "nats:" + b.name }

// Write implements Store.
func (b *Bucket) Write(ctx context.Context, set, file string, size int64, write func(io.Writer) error) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout+time.Duration(size/minBucketRate)*time.Second)
	defer cancel()
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	_, err := b.objects.Put(ctx, jetstream.ObjectMeta{Name: set + "/" + file}, r)
	r.CloseWithError(err) // ends the writer if it is still running
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// Size implements Store.
func (b *Bucket) Size(ctx context.Context, set, file string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	info, err := b.objects.GetInfo(ctx, set+"/"+file)
	if err != nil {
		return 0, notExist(err)
	}
	return int64(info.Size), nil
}

// Seal implements Store.
func (b *Bucket) Seal(ctx context.Context, set string, manifest []byte) error {
	return b.Write(ctx, set, manifestFile, int64(len(manifest)), writes(manifest))
}

// list returns all objects.
func (b *Bucket) list(ctx context.Context) ([]*jetstream.ObjectInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	all, err := b.objects.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil
	}
	return all, err
}

// Sets implements Store.
func (b *Bucket) Sets(ctx context.Context) ([]string, error) {
	all, err := b.list(ctx)
	var sets []string
	for _, o := range all {
		if set, ok := strings.CutSuffix(o.Name, "/"+manifestFile); ok {
			sets = append(sets, set)
		}
	}
	return sets, err
}

// Manifest implements Store.
func (b *Bucket) Manifest(ctx context.Context, set string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	object, err := b.objects.Get(ctx, set+"/"+manifestFile)
	if err != nil {
		return nil, notExist(err)
	}
	defer object.Close()
	data, err := io.ReadAll(io.LimitReader(object, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("manifest of more than %d bytes", maxManifest)
	}
	return data, err
}

// notExist makes the error about a missing object wrap os.ErrNotExist.
func notExist(err error) error {
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	return err
}

// Open implements Store. It downloads the object to a file without a name, which exists until Close.
func (b *Bucket) Open(ctx context.Context, set string, p Part) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout+time.Duration(p.Bytes/minBucketRate)*time.Second)
	defer cancel()
	object, err := b.objects.Get(ctx, set+"/"+p.File)
	if err != nil {
		return nil, notExist(err)
	}
	defer object.Close()
	info, err := object.Info()
	if err != nil {
		return nil, err
	}
	if info.Size != uint64(p.Bytes) { // checked first, so that a wrong object does not fill the disk
		return nil, fmt.Errorf("%d bytes, want %d", info.Size, p.Bytes)
	}
	f, err := os.CreateTemp("", "jacobi-part-*")
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(f, io.LimitReader(object, p.Bytes+1)) // the object may be longer than its info says
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove implements Store. It deletes the manifest first, so that a partly removed set does not look complete.
func (b *Bucket) Remove(ctx context.Context, set string) error {
	all, err := b.list(ctx)
	errs := []error{err}
	for _, manifest := range []bool{true, false} {
		for _, o := range all {
			if strings.HasPrefix(o.Name, set+"/") && strings.HasSuffix(o.Name, "/"+manifestFile) == manifest {
				errs = append(errs, b.delete(ctx, o.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// delete removes an object and the deletion marker that JetStream leaves in its place.
func (b *Bucket) delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	if err := b.objects.Delete(ctx, name); err != nil {
		return err
	}
	return b.stream.Purge(ctx, jetstream.WithPurgeSubject(
		fmt.Sprintf("$O.%s.M.%s", b.name, base64.URLEncoding.EncodeToString([]byte(name)))))
}

// RemoveUnsealed implements Store. It also purges chunks without an object, which a killed writer leaves.
func (b *Bucket) RemoveUnsealed(ctx context.Context) error {
	all, err := b.list(ctx)
	if err != nil {
		return err
	}
	sealed, known := map[string]bool{}, map[string]bool{}
	for _, o := range all {
		known[fmt.Sprintf("$O.%s.C.%s", b.name, o.NUID)] = true
		if set, ok := strings.CutSuffix(o.Name, "/"+manifestFile); ok {
			sealed[set] = true
		}
	}
	var errs []error
	for _, o := range all {
		if set, _, _ := strings.Cut(o.Name, "/"); !sealed[set] {
			errs = append(errs, b.delete(ctx, o.Name))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(fmt.Sprintf("$O.%s.C.>", b.name)))
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for subject := range info.State.Subjects {
		if !known[subject] {
			errs = append(errs, b.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)))
		}
	}
	return errors.Join(errs...)
}
