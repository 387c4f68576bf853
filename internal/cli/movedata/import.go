// Package movedata has the commands that move links between files, data folders and servers:
// import, export, backup and restore.
//
// Read import.go first. jobs.go is what import and export share when a server does the work.
package movedata

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/backend/sqlite"
	"curt/internal/backup"
	"curt/internal/cli"
	"curt/internal/datafolder"
	"curt/internal/exchange"
	"curt/internal/shorten/create"
	"curt/internal/transfer"
)

// Import is the command "curt import".
type Import struct {
	cli.API
	ownLinks

	File     string            `arg:"" help:"CSV or JSON Lines; - is standard input."`
	Format   string            `enum:"auto,csv,jsonl" default:"auto" help:"auto detects it: JSON Lines begin with {."`
	Map      map[string]string `placeholder:"FIELD=COLUMN" help:"Take a field of the links from a column of this name; may be given again. Fields: long_url, short_code, title, tags, domain, starts_at, expires_at, max_clicks, redirect_status, fallback_url; FIELD= takes it from none."`
	Domain   string            `help:"Host to have the links on, where the file does not say."`
	Tag      []string          `help:"Tags for all links, separated by commas."`
	DryRun   bool              `help:"Read everything, say what is wrong, and make nothing."`
	Results  string            `type:"path" help:"File for the result of each row: CSV if it ends in .csv, else JSON Lines. Default: FILE.results.jsonl."`
	Resume   bool              `xor:"again" help:"Continue an interrupted import."`
	Cancel   bool              `xor:"again" help:"Cancel an interrupted import that the server still runs; links created so far remain."`
	To       string            `placeholder:"URL" xor:"into" help:"As --data, for a database of PostgreSQL that no server uses, postgres://user@host/database, or a table of DynamoDB, dynamodb://table?region=region, whose servers may run."`
	Accounts string            `placeholder:"URL" env:"CURT_ACCOUNTS" help:"PostgreSQL database of accounts, where --to is a table of DynamoDB."`
	Data     string            `type:"path" xor:"into" help:"Data folder of a server that is stopped: an export of curt goes in as it is, with ids, versions, times and deleted links."`
}

// Run creates a link per row of a file. Rows that fail have the reason in the results; the
// others are still created.
func (c *Import) Run(ctx context.Context, t cli.Terminal) error {
	switch {
	case c.File == "-" && c.Results == "" && !c.DryRun:
		return cli.UsageError("standard input has no name: pass --results")
	case c.Cancel && (c.DryRun || c.straight()):
		return cli.UsageError("--cancel is for imports through a server")
	}
	if c.Data != "" {
		if err := c.accepts(c.Data); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	in, total, err := c.open(t)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer in.Close() //nolint:errcheck // only read
	i := &importer{Import: c, t: t, total: total, progress: cli.NewProgress(t, total)}
	err = i.run(ctx, in)
	i.progress.Clear()
	return err
}

// straight reports an import that goes into a store as it is, not through a server.
func (c *Import) straight() bool { return c.Data != "" || c.To != "" }

func (c *Import) open(t cli.Terminal) (in io.ReadCloser, total int64, err error) {
	if c.File == "-" {
		return io.NopCloser(t.In), cli.Remaining(t.In), nil
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, 0, err
	}
	return f, cli.Remaining(f), nil
}

func (c *Import) options() transfer.Options {
	return transfer.Options{Format: c.Format, Columns: c.Map, Domain: c.Domain, Tags: c.Tag, DryRun: c.DryRun}
}

// importer is one run of the command.
type importer struct {
	*Import

	t        cli.Terminal
	total    int64 // bytes of the file; 0 = unknown
	progress *cli.Progress
	results  *results

	began   time.Time
	before  importState // of earlier runs
	printed int         // failures
}

func (i *importer) run(ctx context.Context, in io.Reader) (err error) {
	if i.results, err = i.openResults(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.results.close()) }()
	i.began, i.before = time.Now(), i.results.state
	if !i.straight() && !i.DryRun {
		return i.through(ctx, in)
	}
	rows, err := i.read(in, i.results.state.Bytes)
	if err != nil {
		return err
	}
	sink, end, err := i.openSink(ctx)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the reader ends with the command
	return i.work(ctx, ahead(ctx, rows), sink)
}

// read opens the file at an offset, and prints which columns it uses.
func (i *importer) read(in io.Reader, offset int64) (*transfer.Batches, error) {
	rows, err := transfer.Read(in, offset, i.options())
	switch {
	case errors.Is(err, transfer.ErrColumns):
		return nil, cli.UsageError("--map is for CSV")
	case err != nil:
		return nil, fmt.Errorf("import %s: %w", i.File, err)
	}
	if len(rows.Used) > 0 {
		i.t.Note("curt: %s", strings.Join(rows.Used, ", "))
	}
	if len(rows.Ignored) > 0 {
		i.t.Note("curt: ignored: %s", strings.Join(rows.Ignored, ", "))
	}
	return rows, nil
}

func (i *importer) openSink(ctx context.Context) (sink transfer.Sink, end func() error, err error) {
	if i.DryRun {
		return transfer.NewChecker(i.straight(), i.Tag, time.Now()), func() error { return nil }, nil
	}
	if i.To != "" {
		return openStore(ctx, i.To, i.Accounts, i.t.Logger("warn"))
	}
	return openFolder(ctx, i.Data, i.t.Logger("warn"))
}

// batch is some rows, or the error that ends the file.
type batch struct {
	rows []exchange.Row
	err  error
}

// ahead reads the next batch while the current one is created. Its goroutine ends with the
// file or ctx; only the end of the file closes the channel.
func ahead(ctx context.Context, from interface {
	Next(most int) ([]exchange.Row, error)
	Take(n int)
},
) <-chan batch {
	batches := make(chan batch, 1)
	go func() {
		for {
			var b batch
			b.rows, b.err = from.Next(create.MaxMany)
			from.Take(len(b.rows))
			if len(b.rows) == 0 && b.err == nil {
				close(batches)
				return
			}
			select {
			case batches <- b:
			case <-ctx.Done():
				return
			}
			if b.err != nil {
				return
			}
		}
	}()
	return batches
}

// work creates the links of batch after batch. Ctrl-C ends it after the current one.
func (i *importer) work(ctx context.Context, batches <-chan batch, sink transfer.Sink) error {
	for {
		select {
		case <-ctx.Done():
			return i.stopped(cli.ErrInterrupted)
		case b, more := <-batches:
			switch {
			case !more:
				return i.finish()
			case b.err != nil:
				return i.stopped(b.err)
			}
			outcomes, err := sink.Put(context.WithoutCancel(ctx), b.rows, "")
			if err != nil { // these rows may have been stored, also the first ones
				return i.stopped(errors.Join(err, i.results.save()))
			}
			s := &i.results.state
			transfer.Advance(&s.Progress, b.rows, outcomes)
			s.Line = b.rows[len(b.rows)-1].Next - 1
			if err := errors.Join(i.results.add(outcomes), i.results.save()); err != nil {
				return i.stopped(err)
			}
			i.printFailures(outcomes)
			i.show(s.Bytes)
		}
	}
}

// maxPrinted is the number of failures that are printed; all of them are in the results.
const maxPrinted = 20

func (i *importer) printFailures(outcomes []transfer.Outcome) {
	for _, o := range outcomes {
		if o.Error == "" || i.printed > maxPrinted {
			continue
		}
		i.progress.Clear()
		if i.printed++; i.printed > maxPrinted {
			i.t.Note("curt: --results keeps the further failures")
			continue
		}
		i.t.Complain(fmt.Errorf("line %d: %s", o.Line, o.Error))
	}
}

// show draws the progress of the import.
func (i *importer) show(done int64) {
	s, from := &i.results.state, &i.before
	text := i.summary()
	if took := time.Since(i.began); took > time.Second && s.Bytes > from.Bytes {
		rate := float64(s.Bytes-from.Bytes) / took.Seconds()
		text += fmt.Sprintf(", %.0f rows/s", float64(s.Rows-from.Rows)/took.Seconds())
		if i.total > 0 {
			text += fmt.Sprintf(", %s left", time.Duration(float64(i.total-s.Bytes)/rate*float64(time.Second)).Round(time.Second))
		}
	}
	i.progress.Show(time.Now(), done, text)
}

func (i *importer) finish() error {
	i.progress.Clear()
	s := &i.results.state
	if err := i.results.done(); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	text := i.summary()
	if i.DryRun {
		text = fmt.Sprintf("%d rows can be read, %d cannot", s.Created+s.Skipped, s.Failed)
	}
	if i.results.name != "" {
		text += "; results in " + i.results.name
	}
	i.t.Note("%s", text)
	if s.Failed > 0 {
		return cli.Reported(fmt.Errorf("%d failed", s.Failed))
	}
	return nil
}

func (i *importer) stopped(err error) error {
	i.progress.Clear()
	s := &i.results.state
	advice := "--resume continues there"
	if i.DryRun {
		advice = "nothing was made"
	}
	if errors.As(err, new(*client.Problem)) || errors.Is(err, client.ErrNoAnswer) || errors.Is(err, cli.ErrInterrupted) {
		return fmt.Errorf("import stopped after line %d (%s; %s): %w", s.Line, i.summary(), advice, err)
	}
	return fmt.Errorf("import stopped after line %d (%s): %w", s.Line, i.summary(), err)
}

// through imports through a server: the file is sent, a job creates the links, and the results
// are fetched. The state has the id of the job, so that another run can resume it.
func (i *importer) through(ctx context.Context, in io.Reader) error {
	api, err := i.Client()
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	s := &i.results.state
	if s.Job == "" && i.Cancel {
		return i.finish()
	}
	if i.Cancel {
		if _, err := api.Jobs.Cancel(ctx, s.Job); err != nil {
			return i.detached(err)
		}
	} else {
		if in, err = i.checked(in); err != nil {
			return err
		}
		if err := i.results.save(); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		if err := i.send(ctx, api, in); err != nil {
			return i.detached(err)
		}
	}
	j, err := await(ctx, api, s.Job, i.follow)
	if err == nil {
		i.follow(&j)
		err = i.fetch(ctx, api)
	}
	if err != nil {
		return i.detached(err)
	}
	_ = api.Jobs.Delete(ctx, s.Job) // or it expires
	ended := i.finish()
	switch {
	case ended != nil && !cli.IsReported(ended):
	case j.State == "failed":
		return fmt.Errorf("import: %s", j.Error)
	case j.State == "canceled" && !i.Cancel:
		return fmt.Errorf("import: %w", errCanceled)
	}
	return ended
}

// checked parses the head of the file, so that an invalid one is not sent, and returns the
// whole file.
func (i *importer) checked(in io.Reader) (io.Reader, error) {
	var head bytes.Buffer
	if _, err := i.read(io.TeeReader(in, &head), 0); err != nil {
		return nil, err
	}
	return io.MultiReader(&head, in), nil
}

// send creates the job and sends the file, from the offset that the server has.
func (i *importer) send(ctx context.Context, api *client.Client, in io.Reader) error {
	s := &i.results.state
	var j client.Job
	var err error
	if s.Job != "" {
		j, err = api.Jobs.Get(ctx, s.Job)
	}
	if s.Job == "" || gone(err) && !s.Sent { // no link was created from it
		if j, err = api.Jobs.CreateImport(ctx, i.total, client.JobOptions{Format: i.Format, Columns: i.Map, Domain: i.Domain, Tags: i.Tag}); err == nil {
			s.Job = j.ID
			err = i.results.save()
		}
	}
	if err != nil {
		return outdated(err)
	}
	if j.State != "uploading" {
		return nil
	}
	if _, err := io.CopyN(io.Discard, in, j.Uploaded); err != nil {
		return fmt.Errorf("continue at byte %d: %w", j.Uploaded, err)
	}
	for chunk, last := make([]byte, client.MaxJobInput), false; !last; {
		n, err := io.ReadFull(in, chunk)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read %s: %w", i.File, err)
		}
		if last = err != nil; last {
			s.Sent = true
			if err := i.results.save(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return cli.ErrInterrupted
		}
		if j, err = api.Jobs.SendInput(ctx, s.Job, j.Uploaded, chunk[:n], last); err != nil {
			return err
		}
		i.progress.Show(time.Now(), j.Uploaded, "sent")
	}
	return nil
}

// follow shows the progress of the job.
func (i *importer) follow(j *client.Job) {
	p := &i.results.state.Progress
	p.Bytes, p.Rows, p.Created, p.Skipped, p.Failed = j.Progress.Bytes, j.Progress.Rows, j.Progress.Created, j.Progress.Skipped, j.Progress.Failed
	i.show(p.Bytes)
}

// fetch writes the results.
func (i *importer) fetch(ctx context.Context, api *client.Client) error {
	if err := i.results.restart(); err != nil {
		return err
	}
	return download(ctx, api, i.results.state.Job, 0, func(from io.Reader) (int64, error) {
		d := json.NewDecoder(from)
		for {
			outcomes, at := []transfer.Outcome(nil), d.InputOffset()
			var err error
			for err == nil && len(outcomes) < create.MaxMany {
				var o transfer.Outcome
				if err = d.Decode(&o); err == nil {
					outcomes = append(outcomes, o)
				}
			}
			if len(outcomes) > 0 {
				at = d.InputOffset()
				if err := i.results.add(outcomes); err != nil {
					return at, err
				}
				i.printFailures(outcomes)
			}
			if err != nil {
				return at, err
			}
		}
	})
}

// detached ends a run whose job may continue.
func (i *importer) detached(err error) error {
	i.progress.Clear()
	s := &i.results.state
	if errors.Is(err, context.Canceled) {
		err = cli.ErrInterrupted
	}
	advice := "--resume continues there"
	switch {
	case gone(err):
		advice = "it is kept for a day, and the links created so far remain; delete " + i.results.stateName() + " to begin again"
	case s.Sent:
		advice = "the server continues the import; --resume waits for it and fetches the results, --cancel stops it"
	}
	return fmt.Errorf("import stopped (%s; %s): %w", i.summary(), advice, err)
}

// importCacheKiB holds the B-trees that codes and destinations are spread over: 256 MiB are
// enough for two million links, and no server runs on the folder.
const importCacheKiB = 256 << 10

// openFolder opens a data folder to import into; end closes it.
func openFolder(ctx context.Context, data string, log *slog.Logger) (sink transfer.Sink, end func() error, err error) {
	if err := datafolder.Whole(ctx, data); err != nil {
		return nil, nil, err
	}
	lock, err := datafolder.Lock(data)
	if err != nil {
		return nil, nil, err
	}
	err = backup.Unfinished(data)
	var links *sqlite.Links
	if err == nil {
		links, err = sqlite.OpenLinks(ctx, sqlite.LinksConfig{Path: filepath.Join(data, "curt.db"), WriterCacheKiB: importCacheKiB, Log: log})
	}
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	if err := links.Accounts().Beside(ctx); err != nil { // imported decisions would have no effect
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", data, err), links.Close(), lock.Close())
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	loop := make(chan error, 1) // shortens the write-ahead log
	go func() { loop <- links.Run(ctx) }()
	return &transfer.Folder{Links: links, Journal: links.Accounts().Journal()}, func() error {
		stop()
		return errors.Join(<-loop, links.Close(), lock.Close())
	}, nil
}
