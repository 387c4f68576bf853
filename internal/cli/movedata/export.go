package movedata

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"curt.example/client"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/exchange"
	"curt/internal/link"
	"curt/internal/move/relay"
	"curt/internal/settings"
	"curt/internal/transfer"
)

// ExportRows is the number of rows read from one snapshot of the database, which is then
// released: a long export does not hold back the write-ahead log.
const ExportRows = 5000

// Export is the command "curt export".
type Export struct {
	cli.API
	dataFolder

	What   string `arg:"" default:"links" enum:"links,totals,rollups" help:"links; totals, the sums of each link's clicks; or rollups, its days and quarter hours."`
	Output string `short:"o" type:"path" help:"File to make; default: standard output."`
	Remote bool   `help:"Export from the server at --server instead of the data folder: the links that the key can read, without deleted ones."`
	From   string `placeholder:"URL" help:"Export from this database or table instead of the data folder, while its servers run: postgres://user@host/database or dynamodb://table?region=region; links only."`
	CSV    bool   `name:"csv" help:"CSV instead of JSON Lines; of links only."`
	Resume bool   `help:"Continue the file of an interrupted export."`
}

// Run exports while the server may run. A file gets its name when it is complete. Damaged rows
// are left out, and the exit code is then 1.
func (c *Export) Run(ctx context.Context, t cli.Terminal) (err error) {
	if (c.CSV || c.Remote || c.From != "") && c.What != "links" || c.Resume && c.Output == "" || c.Remote && c.From != "" {
		return cli.UsageError("--csv and either --remote or --from go with links, and --resume with --output")
	}
	if c.Remote {
		api, err := c.Client()
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		return (&exporter{Export: c, t: t, api: api, progress: cli.NewProgress(t, 0), out: bufio.NewWriterSize(t.Out, 1<<20)}).write(ctx)
	}
	if c.From != "" {
		return c.fromStore(ctx, t)
	}
	database, elsewhere := "clicks.db", datafolder.CountsElsewhere
	if c.What == "links" {
		database, elsewhere = "curt.db", datafolder.Elsewhere
	}
	if err := elsewhere(c.Data); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if database == "curt.db" {
		if err := datafolder.Whole(ctx, c.Data); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	s, err := snapshot.Take(ctx, filepath.Join(c.Data, database))
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return (&exporter{Export: c, t: t, from: s, progress: cli.NewProgress(t, 0), out: bufio.NewWriterSize(t.Out, 1<<20)}).write(ctx)
}

// fromStore exports the links of a database or a table.
func (c *Export) fromStore(ctx context.Context, t cli.Terminal) (err error) {
	if !config.IsPostgres(c.From) && !config.IsDynamoDB(c.From) {
		return cli.UsageError("--from: expected postgres://user@host/database or dynamodb://table?region=region")
	}
	s, err := relay.OpenPages(ctx, c.From, t.Logger("warn"))
	if err != nil {
		return fmt.Errorf("export: %w", settings.OneLine(err))
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return (&exporter{Export: c, t: t, store: s, progress: cli.NewProgress(t, 0), out: bufio.NewWriterSize(t.Out, 1<<20)}).write(ctx)
}

// write writes to standard output, or to the file.
func (e *exporter) write(ctx context.Context) error {
	if e.Output != "" {
		return e.toFile(ctx)
	}
	if err := e.run(ctx); err != nil {
		return err
	}
	return e.end()
}

// exporter is one run of the command.
type exporter struct {
	*Export

	t        cli.Terminal
	from     *snapshot.Snapshot
	api      *client.Client // instead of from
	store    relay.Pages    // instead of from
	out      *bufio.Writer
	progress *cli.Progress
	state    exportState
	save     func() error // after each page; nil = nothing to save
}

// run writes from the state to the end.
func (e *exporter) run(ctx context.Context) error {
	defer e.progress.Clear()
	if e.api != nil {
		if err := e.fetch(ctx); err != nil {
			return fmt.Errorf("export: %w", outdated(err))
		}
		return nil
	}
	after := e.state.Cursor
	if after == "" {
		if err := e.writer().Header(); err != nil {
			return err
		}
	}
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("export: %w", cli.ErrInterrupted)
		}
		next, err := e.page(ctx, after)
		if err == nil {
			err = e.out.Flush()
		}
		if e.state.Cursor = next; err == nil && e.save != nil && next != "" {
			err = e.save()
		}
		if err == nil && e.from != nil {
			err = e.from.Renew()
		}
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		e.show()
		if after = next; after == "" {
			return nil
		}
	}
}

func (e *exporter) writer() *transfer.Writer { return &transfer.Writer{Out: e.out, CSV: e.CSV} }

func (e *exporter) show() {
	e.progress.Show(time.Now(), e.state.Rows, fmt.Sprintf("%d %s", e.state.Rows, e.What))
}

// fetch starts an export job of the server, or resumes one, and writes its result.
func (e *exporter) fetch(ctx context.Context) error {
	s := &e.state
	if s.Job == "" {
		format := transfer.JSONL
		if e.CSV {
			format = transfer.CSV
		}
		j, err := e.api.Jobs.CreateExport(ctx, format)
		if s.Job = j.ID; err == nil && e.save != nil {
			err = e.save()
		}
		if err != nil {
			return err
		}
	}
	report := func(j *client.Job) {
		s.Rows = j.Progress.Rows
		e.show()
	}
	j, err := await(ctx, e.api, s.Job, report)
	if err != nil {
		return err
	}
	report(&j)
	switch j.State {
	case "failed":
		return errors.New(j.Error)
	case "canceled":
		return errCanceled
	}
	err = download(ctx, e.api, s.Job, s.Bytes, func(from io.Reader) (int64, error) {
		n, err := io.Copy(e.out, from)
		if err == nil {
			err = io.EOF
		}
		if failed := e.out.Flush(); failed != nil {
			return 0, failed
		}
		if e.save != nil {
			return n, errors.Join(err, e.save())
		}
		return n, err
	})
	if err == nil {
		_ = e.api.Jobs.Delete(ctx, s.Job) // or it expires
	}
	return err
}

// page writes the rows after a cursor and returns the next one.
func (e *exporter) page(ctx context.Context, after link.Cursor) (next link.Cursor, err error) {
	switch e.What {
	case "links":
		return e.links(ctx, after)
	case "totals":
		page, next, err := counts.Snapshot{Snapshot: e.from}.Totals(after, ExportRows)
		for i := range page {
			err = errors.Join(err, e.json(exchange.TotalOf(&page[i])))
		}
		return next, err
	default:
		page, next, err := counts.Snapshot{Snapshot: e.from}.Rollups(after, ExportRows)
		for i := range page {
			err = errors.Join(err, e.json(exchange.RollupOf(&page[i])))
		}
		return next, err
	}
}

// links writes a page of links.
func (e *exporter) links(ctx context.Context, after link.Cursor) (next link.Cursor, err error) {
	var page []link.Link
	var damaged []error
	if e.store != nil {
		page, damaged, next, err = e.store.Page(ctx, after, ExportRows)
	} else {
		page, damaged, next, err = sqlite.SnapshotOf(e.from).Links(after, ExportRows)
	}
	if err != nil {
		return "", err
	}
	e.leaveOut(damaged)
	for _, l := range page {
		e.state.Rows++
		if err := e.writer().Link(l); err != nil {
			return "", err
		}
	}
	return next, nil
}

// leaveOut reports rows that cannot be read.
func (e *exporter) leaveOut(damaged []error) {
	for _, err := range damaged {
		if e.state.Damaged++; e.state.Damaged > maxPrinted {
			continue
		}
		e.progress.Clear()
		e.t.Complain(fmt.Errorf("left out: %w", err))
	}
}

// end reports how many rows were left out in all runs.
func (e *exporter) end() error {
	if e.state.Damaged == 0 {
		return nil
	}
	err := fmt.Errorf("export: %d damaged rows were left out, %d links are whole", e.state.Damaged, e.state.Rows)
	e.t.Complain(err)
	return cli.Reported(err)
}

func (e *exporter) json(v any) error {
	e.state.Rows++
	return e.writer().JSON(v)
}

// exportState is the valid part of the file of an interrupted export.
type exportState struct {
	What    string      `json:"what"`
	From    string      `json:"from,omitempty"` // a store; "" = the data folder, or a server
	CSV     bool        `json:"csv"`
	Bytes   int64       `json:"bytes"`
	Rows    int64       `json:"rows"`
	Damaged int64       `json:"damaged"`
	Cursor  link.Cursor `json:"cursor"`
	Job     string      `json:"job,omitempty"` // of the server
}

// toFile writes FILE.partial, and FILE.cursor with its valid part, for --resume.
func (e *exporter) toFile(ctx context.Context) error {
	if _, err := os.Lstat(e.Output); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("export: %s exists", e.Output), err)
	}
	partial, cursor := e.Output+".partial", e.Output+".cursor"
	e.state = exportState{What: e.What, From: config.Redact(e.From), CSV: e.CSV}
	state := &e.state
	if e.Resume {
		if err := cli.LoadState(cursor, state); err != nil {
			return fmt.Errorf("export: nothing to resume: %w; run without --resume to start", err)
		}
		if state.What != e.What || state.From != config.Redact(e.From) || state.CSV != e.CSV || (state.Job != "") != e.Remote {
			return cli.UsageError("the export that was interrupted is of " + state.What + ", in another format or from elsewhere")
		}
		if info, err := os.Stat(partial); err != nil || info.Size() < state.Bytes {
			return errors.Join(fmt.Errorf("export: nothing to resume: %s is shorter than when the export was interrupted", partial), err)
		}
	} else if err := cli.RemoveState(cursor); err != nil { // of an earlier export
		return fmt.Errorf("export: %w", err)
	}
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := errors.Join(f.Truncate(state.Bytes), seekTo(f, state.Bytes)); err != nil {
		return errors.Join(fmt.Errorf("export: %w", err), f.Close())
	}
	e.out = bufio.NewWriterSize(f, 1<<20)
	e.save = func() (err error) {
		if state.Bytes, err = f.Seek(0, io.SeekCurrent); err != nil {
			return err
		}
		return cli.SaveState(cursor, state)
	}
	err = e.run(ctx)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		if _, gone := os.Lstat(cursor); gone == nil {
			e.t.Note("curt: %d %s are in %s; --resume continues there", state.Rows, e.What, partial)
		}
		return err
	}
	if err := os.Rename(partial, e.Output); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := cli.RemoveState(cursor); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	e.t.Note("%d %s in %s", state.Rows, e.What, e.Output)
	return e.end()
}

func seekTo(f *os.File, at int64) error {
	_, err := f.Seek(at, io.SeekStart)
	return err
}
