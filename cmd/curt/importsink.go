package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"curt.example/client"
	"curt/internal/backend/sqlite"
	"curt/internal/backup"
	"curt/internal/exchange"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/server"
)

// remote makes links through the API.
type remote struct {
	api    *client.Client
	domain string
	tags   []string
}

func (r *remote) close() error { return nil }

// put makes the links in one request.
func (r *remote) put(ctx context.Context, rows []exchange.Row, key string) ([]outcome, error) {
	outcomes := make([]outcome, len(rows))
	var wanted []int // rows that go to the server
	var links []client.NewLink
	for i := range rows {
		row, o := &rows[i], &outcomes[i]
		o.Line = row.Line
		switch {
		case row.Err != nil:
			o.Error = row.Err.Error()
		case row.Record.Status == "deleted":
			o.Skipped = "deleted"
		default:
			l, err := r.newLink(&row.Record)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", row.Line, err)
			}
			wanted, links = append(wanted, i), append(links, l)
		}
	}
	if len(links) == 0 {
		return outcomes, nil
	}
	made, err := r.ask(ctx, key, links)
	if err != nil {
		return nil, err
	}
	for n, i := range wanted {
		if err := r.settle(ctx, &rows[i].Record, links[n], made[n], &outcomes[i]); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// ask makes the links, or finds those that stand in for them where the rows have no key.
func (r *remote) ask(ctx context.Context, key string, links []client.NewLink) ([]client.Result, error) {
	if key == "" {
		for n := range links {
			links[n].Dedupe = new(true)
		}
		return r.api.CreateMany(ctx, links)
	}
	made, err := r.api.CreateManyOnce(ctx, key, links)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusUnprocessableEntity {
		return nil, fmt.Errorf("go on with the --map, --domain and --tag that the import began with: %w", err)
	}
	return made, err
}

func (r *remote) newLink(record *exchange.Record) (client.NewLink, error) {
	l, err := newLinkOf(record)
	if l.Domain == "" {
		l.Domain = r.domain
	}
	l.Tags = append(l.Tags, r.tags...)
	return l, err
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

func openFolder(ctx context.Context, data string, log *slog.Logger) (sink, error) {
	if err := server.Whole(ctx, data); err != nil {
		return nil, err
	}
	lock, err := server.LockFolder(data)
	if err != nil {
		return nil, err
	}
	err = backup.Unfinished(data)
	var links *sqlite.Links
	if err == nil {
		links, err = sqlite.OpenLinks(ctx, sqlite.LinksConfig{Path: filepath.Join(data, "curt.db"), WriterCacheKiB: importCacheKiB, Log: log})
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := links.Accounts().Beside(ctx); err != nil { // what was decided would be seen by nobody
		return nil, errors.Join(fmt.Errorf("%s: %w", data, err), links.Close(), lock.Close())
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

func (f *folder) put(ctx context.Context, rows []exchange.Row, _ string) ([]outcome, error) {
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
	if err := f.decide(ctx, links); err != nil {
		return nil, err
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

// decide writes into the journal what was decided about links where they come from, so
// that it stands here too; what an earlier run has written is not written again.
func (f *folder) decide(ctx context.Context, links []link.Link) error {
	journal := f.links.Accounts().Journal()
	var entries []moderation.Entry
	for i := range links {
		l := &links[i]
		if l.Safety == link.Clean || l.Status == link.Deleted {
			continue
		}
		if _, err := journal.Standing(ctx, l.ID); !errors.Is(err, moderation.ErrNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		reason, err := moderation.NewText("decided where the link was imported from", rand.Reader)
		if err != nil {
			return err
		}
		entries = append(entries, moderation.Entry{
			At: time.Now().UTC().Truncate(time.Millisecond), Entity: moderation.OfLink(l.Key), Link: l.ID,
			Action: moderation.ActionDecide, Safety: l.Safety, Actor: "import", Reason: reason,
		})
	}
	for batch := range slices.Chunk(entries, moderation.MaxAppend) {
		if _, err := journal.Append(ctx, batch...); err != nil {
			return fmt.Errorf("write decisions: %w", err)
		}
	}
	return nil
}

// whole returns the link of an export of ours.
func whole(r *exchange.Record) (link.Link, error) {
	if !r.IsWhole() {
		return link.Link{}, errors.New("only an export of curt can go into a data folder; import others through a server")
	}
	return r.Link()
}
