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

	"curt/bench/internal/fill"
	"curt/bench/internal/process"
)

// adminKey is the key of every curt that is measured.
const adminKey = "curt_bench_0123456789abcdefghijklmnop"

// promisedStart is the size of the store in the promise about start-up.
const promisedStart = 1_000_000

// folder makes a new empty folder; drop removes it.
func (b *Bench) folder() (path string, drop func() error, err error) {
	b.made++
	path = filepath.Join(b.cfg.Temp, "data-"+strconv.Itoa(b.made))
	if err := os.Mkdir(path, 0o750); err != nil {
		return "", nil, fmt.Errorf("make a data folder: %w", err)
	}
	return path, func() error { return os.RemoveAll(path) }, nil
}

// curt is a turn of the server on a data folder; core -1 = any. Clicks that it
// dropped make the turn worthless: what is measured includes their capture. settings are
// further variables of its environment.
func (b *Bench) curt(ctx context.Context, data string, core int, f func(context.Context, *process.Server) (sample, error), settings ...string) (sample, error) {
	s, err := b.serve(ctx, data, core, settings...)
	return use(s, err, func(s *process.Server) (sample, error) {
		r, err := f(ctx, s)
		if err != nil {
			return r, err
		}
		r.dropped, err = counter(ctx, s.Admin, "curt_clicks_dropped_total")
		return r, err
	})
}

// serve starts the server on a data folder; who calls it stops it.
func (b *Bench) serve(ctx context.Context, data string, core int, settings ...string) (*process.Server, error) {
	admin, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	s, err := process.Start(ctx, process.Command{
		Path: b.cfg.Curt, Args: []string{"serve"}, Core: core, Ready: "/readyz",
		Env: append([]string{
			"CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN=" + admin,
			"CURT_DATA=" + data, "CURT_ADMIN_KEY=" + adminKey, "CURT_LOG_LEVEL=info",
			"CURT_DOMAINS=" + fill.OtherDomain,
		}, settings...),
	})
	if err != nil {
		return nil, err
	}
	s.Admin = admin
	return s, nil
}

// freeAddr returns an address that nobody listened on a moment ago.
func freeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// counter reads a metric without labels from an admin listener.
func counter(ctx context.Context, admin, name string) (float64, error) {
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
func use(s *process.Server, err error, f func(*process.Server) (sample, error)) (sample, error) {
	if err != nil {
		return sample{}, err
	}
	r, err := f(s)
	r.startup = s.Startup
	return r, errors.Join(err, s.Stop())
}

// onEmpty is a turn of curt on a new store.
func (b *Bench) onEmpty(name string, core int, f func(context.Context, *process.Server) (sample, error)) turn {
	return turn{name, func(ctx context.Context) (r sample, err error) {
		data, drop, err := b.folder()
		if err != nil {
			return sample{}, err
		}
		defer func() { err = errors.Join(err, drop()) }()
		return b.curt(ctx, data, core, f)
	}}
}

// onFilled is a turn of curt on a store with links.
func (b *Bench) onFilled(name string, links *fill.Links, f func(context.Context, *process.Server) (sample, error)) turn {
	return turn{name, func(ctx context.Context) (sample, error) { return b.curt(ctx, links.Folder, -1, f) }}
}

// onBare is a turn of the baseline server.
func (b *Bench) onBare(name string, core int, f func(context.Context, *process.Server) (sample, error)) turn {
	return turn{name, func(ctx context.Context) (r sample, err error) {
		data, drop, err := b.folder()
		if err != nil {
			return sample{}, err
		}
		defer func() { err = errors.Join(err, drop()) }()
		s, err := process.Start(ctx, process.Command{
			Path: b.cfg.Self, Args: []string{"bare", "-data", data}, Core: core, Ready: "/readyz",
		})
		return use(s, err, func(s *process.Server) (sample, error) { return f(ctx, s) })
	}}
}

// filled returns a store of n links, which is made at the first call and kept.
func (b *Bench) filled(ctx context.Context, n int) (*fill.Links, error) {
	return fill.Fill(ctx, filepath.Join(b.cfg.Store, "links-"+strconv.Itoa(n)), n, b.cfg.Progress)
}
