// Package back moves what a database, or tables and a database of accounts, have to a data folder: the way back of package
// move, while no server uses them. Read back.go first; source.go is where the links come from, counts.go statistics of
// ClickHouse.
package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/postgres/movein"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/moveout"
	"curt/internal/backend/sqlite/refill"
	"curt/internal/link"
	"curt/internal/move"
	"curt/internal/statefile"
)

// back is a move from a database to a folder under way.
type back struct {
	move.Config
	result move.Result
	half   string         // the folder until it is complete
	source *movein.Target // of accounts and statistics
	from   backSource     // of links
	frozen frozenSource   // from, until the switch; nil = an earlier run switched
	done   backDone       // by an earlier run
}

// backDone is what a folder that is not complete has: all links and accounts of a database.
type backDone struct {
	Key   [32]byte `json:"key"` // of its codes
	Links int64    `json:"links"`
	Rows  int64    `json:"rows"`
}

// doneFile has a backDone.
const doneFile = "move-back.json"

// Run moves what the database of Config.To has, or the tables of Config.To and the database of
// Config.Accounts, into Config.Data, a folder that must be empty or not
// be there, and compares both. No server may use the database meanwhile: those that are connected
// are an error. The folder gets its name when it is complete. An earlier one that was not is gone on with
// behind its links, and in statistics of ClickHouse day by day.
//
// All codes are taken for chosen ones, as by an import; the counters of codes come too, so that
// none is issued again.
func Run(ctx context.Context, c move.Config) (_ move.Result, err error) {
	b := &back{Config: c, half: filepath.Clean(c.Data) + ".partial"}
	if err := b.empty(); err != nil {
		return b.result, err
	}
	defer func() { err = errors.Join(err, b.close(context.WithoutCancel(ctx))) }()
	key, err := b.open(ctx)
	if err != nil {
		return b.result, err
	}
	for _, step := range []func() error{
		func() error { return b.copy(ctx, key) },
		func() error { return b.counts(ctx) },
		func() error { return b.compare(ctx) },
		func() error { return b.leave(ctx) },
		func() error { return os.Remove(filepath.Join(b.half, doneFile)) },
		func() error { return os.Rename(b.half, c.Data) },
	} {
		if err := step(); err != nil {
			if errors.Is(err, coldcopy.ErrDiffers) { // servers wrote between two runs
				err = errors.Join(fmt.Errorf("%w; run this again", err), os.RemoveAll(b.half))
			}
			return b.result, err
		}
	}
	return b.result, nil
}

// errNotEmpty is of a folder that has something.
var errNotEmpty = errors.New("the data folder is not empty; use another one")

func (b *back) empty() error {
	entries, err := os.ReadDir(b.Data)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case len(entries) > 0:
		return errNotEmpty
	}
	return nil
}

// copy fills curt.db, unless an earlier run has.
func (b *back) copy(ctx context.Context, key [32]byte) error {
	name := filepath.Join(b.half, doneFile)
	text, err := os.ReadFile(name)
	if err == nil && json.Unmarshal(text, &b.done) == nil && b.done.Key == key {
		b.result.Links, b.result.Rows = b.done.Links, b.done.Rows
		return nil
	}
	if err := os.RemoveAll(b.half); err != nil {
		return err
	}
	if err := os.MkdirAll(b.half, 0o750); err != nil {
		return err
	}
	if err := b.accounts(ctx, key); err != nil {
		return err
	}
	if text, err = json.Marshal(backDone{key, b.result.Links, b.result.Rows}); err != nil {
		return err
	}
	return statefile.Replace(name, text)
}

// accounts makes curt.db.
func (b *back) accounts(ctx context.Context, key [32]byte) (err error) {
	l, err := refill.Links(ctx, b.half, key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if b.result.Rows, err = coldcopy.Back(ctx, b.source.Cold(), l.Accounts().Database()); err != nil {
		return err
	}
	return b.from.Each(ctx, func(page []link.Link) error { return b.links(ctx, l, page) })
}

func (b *back) links(ctx context.Context, l *sqlite.Links, page []link.Link) error {
	results, err := l.Import(ctx, page)
	for i := range results {
		if err == nil && results[i].Err != nil {
			err = fmt.Errorf("%s: %w", page[i].Key, results[i].Err)
		}
	}
	b.result.Links += int64(len(page))
	b.Progress("links", b.result.Links, 0)
	return err
}

// counts makes clicks.db.
func (b *back) counts(ctx context.Context) (err error) {
	if !b.Statistics {
		return nil
	}
	if b.Analytics != nil {
		return (&importer{b}).importCounts(ctx)
	}
	if there, err := b.source.Counts().There(ctx); err != nil || !there {
		return err
	}
	if err := removeCounts(b.half); err != nil {
		return err
	}
	c, err := refill.NewCounts(ctx, b.half)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	err = b.source.Counts().EachTotals(ctx, func(rows []movein.Total) error {
		all := make([]refill.Total, len(rows))
		for i, r := range rows {
			all[i] = refill.Total(r)
		}
		return c.Totals(ctx, all)
	})
	if err != nil {
		return err
	}
	return b.source.Counts().EachRollups(ctx, func(rows []movein.Rollup) error {
		all := make([]refill.Rollup, len(rows))
		for i, r := range rows {
			all[i] = refill.Rollup(r)
		}
		return c.Rollups(ctx, all)
	})
}

// removeCounts removes a clicks.db that an earlier run has filled in part.
func removeCounts(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, "clicks.db*"))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// compare reads both sides in whole.
func (b *back) compare(ctx context.Context) (err error) {
	here, err := moveout.Open(ctx, filepath.Join(b.half, "curt.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, here.Close()) }()
	sum, err := coldcopy.New(here, b.source.Cold()).VerifyBack(ctx)
	if err != nil {
		return err
	}
	var links, there coldcopy.Digest
	var bad error
	rows, err := here.EachLink(ctx, func(l *link.Link) { bad = errors.Join(bad, addChosen(&links, *l)) })
	if err = errors.Join(err, bad, move.Sound(rows.Damaged)); err != nil {
		return err
	}
	err = b.from.Each(ctx, func(page []link.Link) error {
		for i := range page {
			if err := addChosen(&there, page[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && links != there {
		err = fmt.Errorf("%d links in the folder and %d in the database, or others: %w", links.Rows, there.Rows, coldcopy.ErrDiffers)
	}
	sum.Add(there)
	b.result.Digest = sum.String()
	return err
}

// addChosen adds a link whatever made its code.
func addChosen(sum *coldcopy.Digest, l link.Link) error {
	l.CodeKind = link.Chosen
	d, err := coldcopy.OfLink(&l)
	sum.Add(d)
	return err
}
