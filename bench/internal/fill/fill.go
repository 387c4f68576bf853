// Package fill puts millions of links into a store without HTTP, so that curt can
// be measured at its promised size. It uses the product's own driver, leases and
// permutation: the file is the one that as many creates would have left.
package fill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"curt/bench/internal/traffic"
	"curt/internal/auth"
	"curt/internal/backend/sqlite"
	"curt/internal/codegen"
	"curt/internal/link"
)

const (
	// Database is the file's name in the data folder of curt.
	Database = "curt.db"

	// stateFile lists what is in the store, so that an interrupted fill goes on and
	// a later run knows the codes.
	stateFile = "fill.json"

	codeLength = 7      // the server's default
	batchLinks = 10_000 // links in one durable write

	// maxRanges bounds the list of leases: with one after the other it has one entry.
	maxRanges = 100_000

	progressEvery = 2 * time.Second
)

// Links are the links that lie in a store.
type Links struct {
	Folder string // the data folder for curt

	perm  *codegen.Permutation
	state state
}

// content is what a fill makes of the links that creates would have left.
type content struct {
	batch  uint64 // links in one durable write
	change func(id uint64, l *link.Link) error
	beside func(ctx context.Context, made []link.Creation) error // called while they are stored
}

// state is the content of stateFile.
type state struct {
	Ranges []idRange `json:"ranges"` // of ids whose links are stored
}

type idRange struct {
	First uint64 `json:"first"`
	Count uint64 `json:"count"`
}

// Fill makes the folder hold at least n links and returns exactly n of them. What
// an earlier call stored is kept; an interrupted call goes on where it was.
// Progress is printed as lines.
func Fill(ctx context.Context, folder string, n int, progress io.Writer) (*Links, error) {
	return fillWith(ctx, folder, n, progress, content{
		batch:  batchLinks,
		change: func(uint64, *link.Link) error { return nil },
		beside: func(context.Context, []link.Creation) error { return nil },
	})
}

// FillEnding is Fill of links with ends: the i-th of them by its id has end(i); the zero time is none.
func FillEnding(ctx context.Context, folder string, n int, end func(i uint64) time.Time, progress io.Writer) (*Links, error) {
	i := uint64(0)
	return fillWith(ctx, folder, n, progress, content{
		batch:  batchLinks,
		change: func(_ uint64, l *link.Link) error { l.Expires = end(i); i++; return nil },
		beside: func(context.Context, []link.Creation) error { return nil },
	})
}

func fillWith(ctx context.Context, folder string, n int, progress io.Writer, c content) (l *Links, err error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	l = &Links{Folder: folder}
	if err := l.state.load(filepath.Join(folder, stateFile)); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	store, err := sqlite.OpenLinks(ctx, sqlite.LinksConfig{Path: filepath.Join(folder, Database)})
	if err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	key, err := store.CodeKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	l.perm = codegen.NewPermutation(key)
	if err := l.run(ctx, store, n, progress, c); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	l.state.cut(uint64(n))
	return l, nil
}

// run fills with the store's own checkpoints beside it.
func (l *Links) run(ctx context.Context, store *sqlite.Links, n int, progress io.Writer, c content) error {
	ctx, stop := context.WithCancelCause(ctx)
	checkpoints := make(chan error, 1)
	go func() {
		err := store.Run(ctx)
		stop(err)
		checkpoints <- err
	}()
	err := l.batches(ctx, store, uint64(n), progress, c)
	stop(nil)
	return errors.Join(err, <-checkpoints)
}

func (l *Links) batches(ctx context.Context, store *sqlite.Links, n uint64, progress io.Writer, c content) error {
	f := filler{content: c, store: store, perm: l.perm, urls: traffic.NewURLs(), random: rand.NewChaCha8([32]byte{})}
	begin, before, shown := time.Now(), l.state.total(), time.Now()
	for l.state.total() < n {
		r, err := f.batch(ctx, min(c.batch, n-l.state.total()))
		if err != nil {
			return err
		}
		if err := l.state.add(r, filepath.Join(l.Folder, stateFile)); err != nil {
			return err
		}
		if done := l.state.total(); time.Since(shown) > progressEvery || done == n {
			shown = time.Now()
			_, _ = fmt.Fprintf(progress, "fill %s: %d of %d links, %.0f/s\n", // a terminal that went away needs no progress
				l.Folder, done, n, float64(done-before)/time.Since(begin).Seconds())
		}
	}
	return nil
}

// filler makes and stores batches.
type filler struct {
	content

	store  *sqlite.Links
	perm   *codegen.Permutation
	urls   *traffic.URLs
	random *rand.ChaCha8
}

// batch leases n ids and stores a link for each in one write.
func (f *filler) batch(ctx context.Context, n uint64) (idRange, error) {
	first, err := f.store.Lease(ctx, codegen.Counter(codegen.DefaultPrefix, codeLength), n)
	if err != nil {
		return idRange{}, err
	}
	links := make([]link.Creation, n)
	for i := range links {
		if links[i].Link, err = f.link(first + uint64(i)); err != nil {
			return idRange{}, err
		}
	}
	beside := make(chan error, 1)
	go func() { beside <- f.beside(ctx, links) }()
	results, err := f.store.CreateMany(ctx, time.Now(), links)
	if err = errors.Join(err, <-beside); err != nil {
		return idRange{}, err
	}
	for i, r := range results {
		if r.Err != nil {
			return idRange{}, fmt.Errorf("store %s: %w", links[i].Link.Key, r.Err)
		}
	}
	return idRange{first, n}, nil
}

// link is what a create over HTTP with the admin key would have stored.
func (f *filler) link(id uint64) (link.Link, error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	uuid, err := link.NewID(now, f.random)
	if err != nil {
		return link.Link{}, err
	}
	l := link.Link{
		ID: uuid, Key: link.Key{Code: f.perm.Code(codeLength, id)}, CodeKind: link.Counted,
		Destination: string(f.urls.Append(nil, id)), Workspace: link.WorkspaceDefault, CreatedBy: auth.AdminKeyID,
		Status: link.Active, Safety: link.Clean, Redirect: 302, NoIndex: true,
		Created: now, Updated: now,
	}
	return l, f.change(id, &l)
}

// Count returns how many links there are.
func (l *Links) Count() int { return int(l.state.total()) }

// Code returns the code of link i, 0 <= i < Count.
func (l *Links) Code(i int) link.Code { return l.perm.Code(codeLength, l.id(i)) }

// id returns the number under the permutation of link i.
func (l *Links) id(i int) uint64 {
	left := uint64(i)
	for _, r := range l.state.Ranges {
		if left < r.Count {
			return r.First + left
		}
		left -= r.Count
	}
	panic("fill: no such link")
}

func (s *state) total() (n uint64) {
	for _, r := range s.Ranges {
		n += r.Count
	}
	return n
}

// cut leaves the first n links in the list.
func (s *state) cut(n uint64) {
	for i := range s.Ranges {
		r := &s.Ranges[i]
		r.Count = min(r.Count, n)
		n -= r.Count
	}
}

func (s *state) load(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// add notes a range that is stored. The file is replaced as a whole; a range that
// a crash kept out of it is in the store without being counted, which harms nobody.
func (s *state) add(r idRange, path string) error {
	if last := len(s.Ranges) - 1; last >= 0 && s.Ranges[last].First+s.Ranges[last].Count == r.First {
		s.Ranges[last].Count += r.Count
	} else {
		s.Ranges = append(s.Ranges, r)
	}
	if len(s.Ranges) > maxRanges {
		return errors.New("too many leases: fill a new folder")
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
