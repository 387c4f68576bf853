package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"curt/client"
	"curt/internal/backend/sqlite"
	"curt/internal/backup"
	"curt/internal/exchange"
	"curt/internal/link"
	"curt/internal/server"
	"curt/internal/shorten"
	"curt/internal/weburl"
)

// remote makes links through the API.
type remote struct {
	api    *client.Client
	domain string
	tags   []string
	wait   func(time.Duration) error // returns early when the command is to end
}

func (r *remote) close() error { return nil }

func (r *remote) put(ctx context.Context, rows []exchange.Row, doubtful bool) ([]outcome, error) {
	outcomes := make([]outcome, len(rows))
	var wanted []int // rows that go to the server
	for i := range rows {
		row, o := &rows[i], &outcomes[i]
		o.Line = row.Line
		switch {
		case row.Err != nil:
			o.Error = row.Err.Error()
		case row.Record.Status == "deleted":
			o.Skipped = "deleted"
		default:
			wanted = append(wanted, i)
		}
	}
	return outcomes, r.send(ctx, rows, wanted, outcomes, doubtful)
}

// send makes the links of the wanted rows. What a limit does not let pass at once goes
// in halves, and waits when it is one.
func (r *remote) send(ctx context.Context, rows []exchange.Row, wanted []int, outcomes []outcome, doubtful bool) error {
	if len(wanted) == 0 {
		return nil
	}
	links := make([]client.NewLink, len(wanted))
	for n, i := range wanted {
		links[n] = r.newLink(&rows[i].Record)
		if doubtful && links[n].CustomAlias == "" {
			links[n].Dedupe = new(true)
		}
	}
	made, err := r.api.CreateMany(ctx, links)
	wait := refusedFor(err)
	switch {
	case err != nil && len(wanted) > 1 && (wait >= 0 || tooMany(err)):
		half := len(wanted) / 2
		if err := r.send(ctx, rows, wanted[:half], outcomes, doubtful); err != nil {
			return err
		}
		return r.send(ctx, rows, wanted[half:], outcomes, doubtful)
	case wait >= 0:
		if err := r.wait(wait); err != nil {
			return err
		}
		return r.send(ctx, rows, wanted, outcomes, doubtful)
	case err != nil:
		return err
	}
	for n, i := range wanted {
		if err := r.settle(ctx, &rows[i].Record, links[n], made[n], &outcomes[i], doubtful); err != nil {
			return err
		}
	}
	return nil
}

func (r *remote) newLink(record *exchange.Record) client.NewLink {
	l := client.NewLink{
		LongURL: record.LongURL, CustomAlias: record.Code, Domain: record.Domain, StartsAt: record.Starts,
		ExpiresAt: record.Expires, RedirectStatus: record.Redirect, Title: record.Title, MaxClicks: record.MaxClicks,
		FallbackURL: record.Fallback, ForwardQuery: record.ForwardQuery, Cacheable: record.Cacheable,
	}
	if record.NoIndex || record.IsWhole() { // elsewhere, what is not said is the server's choice
		l.NoIndex = new(record.NoIndex)
	}
	if l.Domain == "" {
		l.Domain = r.domain
	}
	l.Tags = append(append(l.Tags, record.Tags...), r.tags...)
	return l
}

// settle says what became of a row. One that an earlier run may have made is made when
// its code leads where it is to lead.
func (r *remote) settle(ctx context.Context, record *exchange.Record, wanted client.NewLink, made client.Result, o *outcome, doubtful bool) error {
	l := made.Link
	if l == nil && doubtful && made.Problem != nil && made.Problem.Status == http.StatusConflict && wanted.CustomAlias != "" {
		there, err := r.api.Get(ctx, wanted.CustomAlias, client.OnDomain(wanted.Domain))
		if err == nil && sameURL(there.LongURL, wanted.LongURL) {
			l = &there
		}
	}
	switch {
	case l != nil:
	case made.Problem != nil && made.Problem.Status >= http.StatusInternalServerError:
		return made.Problem // not the row's fault: it is tried again
	default:
		o.Error = explained(made.Problem).Error()
		return nil
	}
	o.Code, o.ShortURL = l.ShortCode, l.ShortURL
	if record.Status == "disabled" && l.Status != "disabled" {
		if _, err := r.api.Update(ctx, l.ShortCode, map[string]any{"status": "disabled"}, client.OnDomain(wanted.Domain)); err != nil {
			return fmt.Errorf("disable %s: %w", l.ShortCode, err)
		}
	}
	return nil
}

// sameURL compares as the server does, which keeps the normal form.
func sameURL(stored, asked string) bool {
	u, err := weburl.Parse(asked)
	return err == nil && u.Href() == stored
}

// folder puts links into a data folder, as they are.
type folder struct {
	links *sqlite.Links
	lock  io.Closer
	end   context.CancelFunc // of the loop that shortens the write-ahead log
	loop  chan error
}

// importCacheKiB holds the B-trees that codes and destinations are spread over: 256 MiB
// are enough for two million links, and nobody else is on the machine's folder.
const importCacheKiB = 256 << 10

func openFolder(ctx context.Context, data string) (sink, error) {
	lock, err := server.LockFolder(data)
	if err != nil {
		return nil, err
	}
	err = backup.Unfinished(data)
	var links *sqlite.Links
	if err == nil {
		links, err = sqlite.OpenLinks(ctx, sqlite.LinksConfig{Path: filepath.Join(data, "curt.db"), WriterCacheKiB: importCacheKiB})
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f := &folder{links: links, lock: lock, loop: make(chan error, 1)}
	ctx, f.end = context.WithCancel(context.WithoutCancel(ctx))
	go func() { f.loop <- links.Run(ctx) }()
	return f, nil
}

func (f *folder) close() error {
	f.end()
	return errors.Join(<-f.loop, f.links.Close(), f.lock.Close())
}

func (f *folder) put(ctx context.Context, rows []exchange.Row, _ bool) ([]outcome, error) {
	outcomes := make([]outcome, len(rows))
	var links []link.Link
	var wanted []int
	for i := range rows {
		row, o := &rows[i], &outcomes[i]
		o.Line = row.Line
		err := row.Err
		if err == nil && !row.Record.IsWhole() {
			err = errors.New("only an export of curt can go into a data folder; import others through a server")
		}
		var l link.Link
		if err == nil {
			l, err = row.Record.Link()
		}
		if err != nil {
			o.Error = err.Error()
			continue
		}
		o.Code = string(l.Key.Code)
		links, wanted = append(links, l), append(wanted, i)
	}
	if len(links) == 0 {
		return outcomes, nil
	}
	stored, err := f.links.Import(ctx, links)
	if err != nil {
		return nil, err
	}
	for n, i := range wanted {
		switch err := stored[n].Err; {
		case errors.Is(err, link.ErrExists):
			outcomes[i] = outcome{Line: rows[i].Line, Error: "the code is taken by another link"}
		case err != nil:
			outcomes[i] = outcome{Line: rows[i].Line, Error: err.Error()}
		}
	}
	return outcomes, nil
}

// checker makes nothing: it finds what no server would take, as far as that can be said
// without one.
type checker struct{ codes map[string]int }

func newChecker() *checker { return &checker{map[string]int{}} }

func (c *checker) close() error { return nil }

func (c *checker) put(_ context.Context, rows []exchange.Row, _ bool) ([]outcome, error) {
	outcomes := make([]outcome, len(rows))
	for i := range rows {
		row, o := &rows[i], &outcomes[i]
		o.Line, o.Code = row.Line, row.Record.Code
		err := row.Err
		if err == nil && row.Record.Status == "deleted" {
			o.Skipped = "deleted"
			continue
		}
		if err == nil {
			err = c.check(&row.Record, row.Line)
		}
		if err != nil {
			o.Error = err.Error()
		}
	}
	return outcomes, nil
}

func (c *checker) check(r *exchange.Record, line int) error {
	if _, err := weburl.Parse(r.LongURL); err != nil {
		if e, ok := errors.AsType[*weburl.Error](err); ok {
			return fmt.Errorf("long_url: %s", e.PublicMessage())
		}
		return fmt.Errorf("long_url: %w", err)
	}
	if r.Code == "" {
		return nil
	}
	if err := shorten.CheckAlias(r.Code); err != nil {
		return fmt.Errorf("short_code: %w", err)
	}
	key := r.Domain + "/" + r.Code
	if first, twice := c.codes[key]; twice {
		return fmt.Errorf("short_code: %s stands on line %d already", r.Code, first)
	}
	c.codes[key] = line
	return nil
}
