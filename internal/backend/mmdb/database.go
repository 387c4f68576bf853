package mmdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/clicks"
)

// Config says which file is read.
type Config struct {
	Path string
	Log  *slog.Logger // nil = none
}

// checkEvery is how often Run looks whether the file has changed.
const checkEvery = time.Minute

// maxFile bounds the file, which is held in memory. The largest that are sold have
// some 2 GiB.
const maxFile = 4 << 30

// ErrFile means that the path is no file that can be read.
var ErrFile = errors.New("expected a readable .mmdb file")

// Database is a .mmdb file in memory. It implements clicks.Geo and is safe for
// many goroutines.
type Database struct {
	config Config
	now    atomic.Pointer[edition] // nil = no usable file

	reloading sync.Mutex
	seen      stamp // guarded by reloading; of the file that was read last
	gone      bool  // guarded by reloading; there was no file at the last look
	stats     stats
}

var _ clicks.Geo = (*Database)(nil)

// stamp tells versions of a file apart.
type stamp struct {
	size    int64
	changed time.Time
	inode   os.FileInfo
}

func (s stamp) same(o stamp) bool {
	return s.size == o.size && s.changed.Equal(o.changed) && s.inode != nil && o.inode != nil && os.SameFile(s.inode, o.inode)
}

type stats struct{ reloads, failures, damages atomic.Uint64 }

// Stats are counters since the start.
type Stats struct {
	Reloads  uint64 // files read with success
	Failures uint64 // files that are no databases; the one before stays
	Damages  uint64 // places that could not be read
}

// Stats returns the counters.
func (d *Database) Stats() Stats {
	return Stats{d.stats.reloads.Load(), d.stats.failures.Load(), d.stats.damages.Load()}
}

// Open reads the file. What is no file is ErrFile; a file that is no database is
// logged, and all places are unknown until a good one takes its place.
func Open(ctx context.Context, c Config) (*Database, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d := &Database{config: c}
	err := d.reload(ctx)
	if errors.Is(err, ErrFile) {
		return nil, err
	}
	d.report(ctx, err)
	return d, nil
}

// Run reads the file anew when it has changed, until ctx ends; then it returns nil.
func (d *Database) Run(ctx context.Context) error {
	for range background.Ticks(ctx, checkEvery) {
		d.report(ctx, d.reload(ctx))
	}
	return nil
}

// report logs why a file cannot be used; the one before stays in use.
func (d *Database) report(ctx context.Context, err error) {
	if err != nil {
		d.stats.failures.Add(1)
		d.config.Log.ErrorContext(ctx, "loading the geoip database failed, keeping previous version", slog.String("file", d.config.Path), slog.Any("err", err))
	}
}

// reload reads the file if it is another than the last one, and says once what is
// wrong with it.
func (d *Database) reload(ctx context.Context) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	found, err := look(d.config.Path)
	if err == nil && found.same(d.seen) || err != nil && d.gone {
		return nil
	}
	d.seen, d.gone = found, err != nil
	if err != nil {
		return err
	}
	e, err := read(d.config.Path, &d.stats)
	if err != nil {
		return err
	}
	d.now.Store(e)
	d.stats.reloads.Add(1)
	d.config.Log.InfoContext(ctx, "geoip database loaded", slog.String("file", d.config.Path),
		slog.String("type", e.kind), slog.Time("built", e.built))
	return nil
}

func look(path string) (stamp, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return stamp{}, fmt.Errorf("%w: %w", ErrFile, err)
	case !info.Mode().IsRegular():
		return stamp{}, fmt.Errorf("%w: %s is not a regular file", ErrFile, path)
	case info.Size() > maxFile:
		return stamp{}, fmt.Errorf("%w: %s is larger than 4 GiB", ErrFile, path)
	}
	return stamp{info.Size(), info.ModTime(), info}, nil
}

// Country returns the country of an address, ISO 3166-1 alpha-2; "" = unknown. It costs
// what Locate does.
func (d *Database) Country(addr netip.Addr) string {
	code := d.Locate(addr).Country
	if code == ([2]byte{}) {
		return ""
	}
	return string(code[:])
}

// Built returns when the file in use was built, as it says itself; zero = none is loaded.
func (d *Database) Built() time.Time {
	if e := d.now.Load(); e != nil {
		return e.built
	}
	return time.Time{}
}

// Locate implements clicks.Geo: 0.2 µs and no allocation for a place that was
// asked for lately.
func (d *Database) Locate(addr netip.Addr) clicks.Location {
	e := d.now.Load()
	if e == nil {
		return clicks.Location{}
	}
	return e.locate(addr.Unmap().WithZone(""))
}
