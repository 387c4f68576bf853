package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/exchange"
	"curt/internal/link"
	"curt/internal/server"
)

// exportRows are read from one state of the database, which is let go after them: an
// export may take as long as it likes.
const exportRows = 5000

type exportCmd struct {
	dataFolder

	What   string `arg:"" default:"links" enum:"links,totals,rollups" help:"links; totals, the sums of each link's clicks; or rollups, its days and quarter hours."`
	Output string `short:"o" type:"path" help:"File to make; default: standard output."`
	CSV    bool   `name:"csv" help:"CSV instead of JSON Lines; of links only."`
	Resume bool   `help:"Go on with the file that an interrupted export has begun."`
}

// Run writes what there is, beside a server that runs. A file gets its name when it is
// whole. Damaged rows are left out, and make the command fail in the end.
func (c *exportCmd) Run(ctx context.Context, t terminal) (err error) {
	if c.CSV && c.What != "links" || c.Resume && c.Output == "" {
		return usageError("--csv goes with links, and --resume with --output")
	}
	database, elsewhere := "clicks.db", server.CountsElsewhere
	if c.What == "links" {
		database, elsewhere = "curt.db", server.Elsewhere
	}
	if err := elsewhere(c.Data); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if database == "curt.db" {
		if err := server.Whole(ctx, c.Data); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	s, err := sqlite.TakeSnapshot(ctx, filepath.Join(c.Data, database))
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	e := &export{exportCmd: c, t: t, from: s, progress: newProgress(t, 0), out: bufio.NewWriterSize(t.out, 1<<20)}
	if c.Output == "" {
		if err := e.run(ctx, ""); err != nil {
			return err
		}
		return e.end()
	}
	return e.toFile(ctx)
}

// export is one run of the command.
type export struct {
	*exportCmd

	t        terminal
	from     *sqlite.Snapshot
	out      *bufio.Writer
	progress *progress
	done     int64
	damaged  int64                        // rows that were left out
	saved    func(next link.Cursor) error // after each page; nil = nothing to save
}

// run writes from a cursor on to the end.
func (e *export) run(ctx context.Context, after link.Cursor) error {
	defer e.progress.clear()
	if e.CSV && after == "" {
		if err := e.cells(exchange.Columns()); err != nil {
			return err
		}
	}
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("export: %w", errInterrupted)
		}
		next, err := e.page(after)
		if err == nil {
			err = e.out.Flush()
		}
		if err == nil && e.saved != nil && next != "" {
			err = e.saved(next)
		}
		if err == nil {
			err = e.from.Renew()
		}
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		e.progress.show(time.Now(), e.done, fmt.Sprintf("%d %s", e.done, e.What))
		if after = next; after == "" {
			return nil
		}
	}
}

// page writes the rows after a cursor and returns the next one.
func (e *export) page(after link.Cursor) (next link.Cursor, err error) {
	switch e.What {
	case "links":
		var page []link.Link
		var damaged []error
		if page, damaged, next, err = e.from.Links(after, exportRows); err != nil {
			return "", err
		}
		e.leaveOut(damaged)
		for _, l := range page {
			if err := e.link(exchange.RecordOf(l)); err != nil {
				return "", err
			}
		}
		return next, nil
	case "totals":
		page, next, err := e.from.Totals(after, exportRows)
		for i := range page {
			err = errors.Join(err, e.json(exchange.TotalOf(&page[i])))
		}
		return next, err
	default:
		page, next, err := e.from.Rollups(after, exportRows)
		for i := range page {
			err = errors.Join(err, e.json(exchange.RollupOf(&page[i])))
		}
		return next, err
	}
}

// leaveOut says which rows are not exported: nobody knows what the links were.
func (e *export) leaveOut(damaged []error) {
	for _, err := range damaged {
		if e.damaged++; e.damaged > mostTold {
			continue
		}
		e.progress.clear()
		e.t.complain(fmt.Errorf("left out: %w", err))
	}
}

// end says how many rows were left out in all runs.
func (e *export) end() error {
	if e.damaged == 0 {
		return nil
	}
	err := fmt.Errorf("export: %d damaged rows were left out, %d links are whole", e.damaged, e.done)
	e.t.complain(err)
	return saidError{err}
}

func (e *export) link(r exchange.Record) error {
	if e.CSV {
		e.done++
		return e.cells(r.Cells())
	}
	return e.json(r)
}

func (e *export) json(v any) error {
	e.done++
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = e.out.Write(append(text, '\n'))
	return err
}

func (e *export) cells(cells []string) error {
	w := csv.NewWriter(e.out)
	if err := w.Write(cells); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// exportState says how far the file of an interrupted export is good.
type exportState struct {
	What    string      `json:"what"`
	CSV     bool        `json:"csv"`
	Bytes   int64       `json:"bytes"`
	Rows    int64       `json:"rows"`
	Damaged int64       `json:"damaged"`
	Cursor  link.Cursor `json:"cursor"`
}

// toFile writes FILE.partial, and beside it how far it is good, for --resume.
func (e *export) toFile(ctx context.Context) error {
	if _, err := os.Lstat(e.Output); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("export: %s is there already", e.Output), err)
	}
	partial, cursor := e.Output+".partial", e.Output+".cursor"
	state := exportState{What: e.What, CSV: e.CSV}
	if e.Resume {
		if err := loadState(cursor, &state); err != nil {
			return fmt.Errorf("export: there is nothing to go on with: %w; without --resume it begins", err)
		}
		if state.What != e.What || state.CSV != e.CSV {
			return usageError("the export that was interrupted is of " + state.What)
		}
		if info, err := os.Stat(partial); err != nil || info.Size() < state.Bytes {
			return errors.Join(fmt.Errorf("export: there is nothing to go on with: %s is shorter than when the export was interrupted", partial), err)
		}
	} else if err := os.Remove(cursor); err != nil && !errors.Is(err, fs.ErrNotExist) { // of another file than the one that begins
		return fmt.Errorf("export: %w", err)
	}
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := errors.Join(f.Truncate(state.Bytes), seekTo(f, state.Bytes)); err != nil {
		return errors.Join(fmt.Errorf("export: %w", err), f.Close())
	}
	e.out, e.done, e.damaged = bufio.NewWriterSize(f, 1<<20), state.Rows, state.Damaged
	e.saved = func(next link.Cursor) error {
		at, err := f.Seek(0, io.SeekCurrent)
		state.Bytes, state.Rows, state.Damaged, state.Cursor = at, e.done, e.damaged, next
		return errors.Join(err, saveState(cursor, state))
	}
	err = e.run(ctx, state.Cursor)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		if _, gone := os.Lstat(cursor); gone == nil {
			e.t.note("curt: %d %s are in %s; --resume goes on there", state.Rows, e.What, partial)
		}
		return err
	}
	if err := os.Rename(partial, e.Output); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := os.Remove(cursor); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("export: %w", err)
	}
	e.t.note("%d %s in %s", e.done, e.What, e.Output)
	return e.end()
}

func seekTo(f *os.File, at int64) error {
	_, err := f.Seek(at, io.SeekStart)
	return err
}

// saveState replaces a small file of JSON, whole or not at all.
func saveState(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := os.WriteFile(name+".new", append(text, '\n'), 0o600); err != nil {
		_ = os.Remove(name + ".new") // the disk may be full
		return err
	}
	return os.Rename(name+".new", name)
}

func loadState(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
