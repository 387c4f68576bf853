package figures

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"curt/bench/internal/fill"
	"curt/bench/internal/process"
)

// AdminKey is the key of every curt that is measured.
const AdminKey = "curt_bench_0123456789abcdefghijklmnop"

// Folder makes a new empty folder; drop removes it.
func (b *Bench) Folder() (path string, drop func() error, err error) {
	b.count.folders++
	path = filepath.Join(b.Config.Temp, "data-"+strconv.Itoa(b.count.folders))
	if err := os.Mkdir(path, 0o750); err != nil {
		return "", nil, fmt.Errorf("make a data folder: %w", err)
	}
	return path, func() error { return os.RemoveAll(path) }, nil
}

// Curt is a turn of the server on a data folder; core -1 = any. Clicks that it
// dropped make the turn worthless: what is measured includes their capture. settings are
// further variables of its environment.
func (b *Bench) Curt(ctx context.Context, data string, core int, f func(context.Context, *process.Server) (Sample, error), settings ...string) (Sample, error) {
	s, err := b.Serve(ctx, data, core, settings...)
	return use(s, err, func(s *process.Server) (Sample, error) {
		r, err := f(ctx, s)
		if err != nil {
			return r, err
		}
		r.dropped, err = Counter(ctx, s.Admin, "curt_clicks_dropped_total")
		return r, err
	})
}

// Serve starts the server on a data folder; who calls it stops it.
func (b *Bench) Serve(ctx context.Context, data string, core int, settings ...string) (*process.Server, error) {
	admin, err := FreeAddr(ctx)
	if err != nil {
		return nil, err
	}
	s, err := process.Start(ctx, process.Command{
		Path: b.Config.Curt, Args: []string{"serve"}, Core: core, Ready: "/readyz",
		Env: append([]string{
			"CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN=" + admin,
			"CURT_DATA=" + data, "CURT_ADMIN_KEY=" + AdminKey, "CURT_LOG_LEVEL=info",
			"CURT_DOMAINS=" + fill.OtherDomain,
		}, settings...),
	})
	if err != nil {
		return nil, err
	}
	s.Admin = admin
	return s, nil
}

// FreeAddr returns an address that nobody listened on a moment ago.
func FreeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Counter reads a metric without labels from an admin listener.
func Counter(ctx context.Context, admin, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("%s has no metric %s", admin, name), lines.Err())
}

// use runs f on a server and stops it. A server that did not end in order makes
// the turn worthless.
func use(s *process.Server, err error, f func(*process.Server) (Sample, error)) (Sample, error) {
	if err != nil {
		return Sample{}, err
	}
	r, err := f(s)
	r.Startup = s.Startup
	return r, errors.Join(err, s.Stop())
}

// OnEmpty is a turn of curt on a new store.
func (b *Bench) OnEmpty(name string, core int, f func(context.Context, *process.Server) (Sample, error)) Turn {
	return Turn{Name: name, Run: func(ctx context.Context) (r Sample, err error) {
		data, drop, err := b.Folder()
		if err != nil {
			return Sample{}, err
		}
		defer func() { err = errors.Join(err, drop()) }()
		return b.Curt(ctx, data, core, f)
	}}
}

// OnFilled is a turn of curt on a store with links.
func (b *Bench) OnFilled(name string, links *fill.Links, f func(context.Context, *process.Server) (Sample, error)) Turn {
	return Turn{Name: name, Run: func(ctx context.Context) (Sample, error) { return b.Curt(ctx, links.Folder, -1, f) }}
}

// OnBare is a turn of the baseline server.
func (b *Bench) OnBare(name string, core int, f func(context.Context, *process.Server) (Sample, error)) Turn {
	return Turn{Name: name, Run: func(ctx context.Context) (r Sample, err error) {
		data, drop, err := b.Folder()
		if err != nil {
			return Sample{}, err
		}
		defer func() { err = errors.Join(err, drop()) }()
		s, err := process.Start(ctx, process.Command{
			Path: b.Config.Self, Args: []string{"bare", "-data", data}, Core: core, Ready: "/readyz",
		})
		return use(s, err, func(s *process.Server) (Sample, error) { return f(ctx, s) })
	}}
}

// Filled returns a store of n links, which is made at the first call and kept.
func (b *Bench) Filled(ctx context.Context, n int) (*fill.Links, error) {
	return fill.Fill(ctx, filepath.Join(b.Config.Store, "links-"+strconv.Itoa(n)), n, b.Config.Progress)
}

// IndexBound is how long the index may take to catch up with the links.
const IndexBound = 30 * time.Minute

// Await waits until a metric has a value or a higher one.
func Await(ctx context.Context, s *process.Server, name string, least float64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, IndexBound, fmt.Errorf("%s is not %.0f after %s", name, least, IndexBound))
	defer cancel()
	for {
		value, err := Counter(ctx, s.Admin, name)
		if err != nil || value >= least {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Pause waits for some time, or less where ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", context.Cause(ctx))
	case <-time.After(d):
		return nil
	}
}
