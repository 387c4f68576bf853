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
	"curt/internal/weburl"
)

// remote makes links through the API.
type remote struct {
	api    *client.Client
	domain string
	tags   []string
	began  time.Time                 // of the import, by the clock of this machine
	sleep  func(time.Duration) error // returns early when the command is to end
	wait   func(time.Duration) error // sleep that says why
}

const (
	// clockSkew is how far the clocks of this machine and of the server may lie apart.
	clockSkew = 5 * time.Minute
	// A code that is taken by no link yet is one that the server makes just now, of the
	// request of a run that was killed: it is looked for again so often.
	looks     = 8
	lookAgain = 400 * time.Millisecond
)

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
	if doubtful {
		if err := r.recognize(ctx, links, made); err != nil {
			return err
		}
	}
	for n, i := range wanted {
		if err := r.settle(ctx, &rows[i].Record, links[n], made[n], &outcomes[i]); err != nil {
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
	if record.NoIndex || record.Indexed || record.IsWhole() { // elsewhere, what is not said is the server's choice
		l.NoIndex = new(record.NoIndex)
	}
	if l.Domain == "" {
		l.Domain = r.domain
	}
	l.Tags = append(append(l.Tags, record.Tags...), r.tags...)
	return l
}

// recognize finds the links that an earlier run has made among those whose codes are
// taken, when the others are made: the server may still be at the request of that run.
func (r *remote) recognize(ctx context.Context, links []client.NewLink, made []client.Result) error {
	var taken []int
	for n := range made {
		if p := made[n].Problem; p != nil && p.Status == http.StatusConflict && links[n].CustomAlias != "" {
			taken = append(taken, n)
		}
	}
	for look := 1; ; look++ {
		var missing []int
		for _, n := range taken {
			there, found, err := r.get(ctx, links[n])
			switch {
			case err != nil:
				return err
			case !found:
				missing = append(missing, n)
			case r.isOurs(&there, &links[n]):
				made[n] = client.Result{Link: &there}
			}
		}
		if taken = missing; len(taken) == 0 || look == looks {
			return nil
		}
		if err := r.sleep(lookAgain); err != nil {
			return err
		}
	}
}

// get waits when a limit asks to.
func (r *remote) get(ctx context.Context, l client.NewLink) (there client.Link, found bool, err error) {
	for {
		there, err := r.api.Get(ctx, l.CustomAlias, client.OnDomain(l.Domain))
		if wait := refusedFor(err); wait >= 0 {
			if err := r.wait(wait); err != nil {
				return there, false, err
			}
			continue
		}
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Status < http.StatusInternalServerError {
			return there, false, nil
		}
		return there, err == nil, err
	}
}

// isOurs reports whether this import has made a link for a row.
func (r *remote) isOurs(there *client.Link, wanted *client.NewLink) bool {
	return sameURL(there.LongURL, wanted.LongURL) && !there.CreatedAt.Before(r.began.Add(-clockSkew))
}

// settle says what became of a row.
func (r *remote) settle(ctx context.Context, record *exchange.Record, wanted client.NewLink, made client.Result, o *outcome) error {
	l := made.Link
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
		var l link.Link
		if err == nil {
			l, err = whole(&row.Record)
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

// whole returns the link of an export of ours.
func whole(r *exchange.Record) (link.Link, error) {
	if !r.IsWhole() {
		return link.Link{}, errors.New("only an export of curt can go into a data folder; import others through a server")
	}
	return r.Link()
}
