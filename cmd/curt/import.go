package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"curt.example/client"
	"curt/internal/exchange"
)

type importCmd struct {
	api
	ownLinks

	File    string            `arg:"" help:"CSV or JSON Lines; - is standard input."`
	Format  string            `enum:"auto,csv,jsonl" default:"auto" help:"auto looks at the file: JSON Lines begin with {."`
	Map     map[string]string `placeholder:"FIELD=COLUMN" help:"Take a field of the links from a column of this name; may be given again. Fields: long_url, short_code, title, tags, domain, starts_at, expires_at, max_clicks, redirect_status, fallback_url; FIELD= takes it from none."`
	Domain  string            `help:"Host to have the links on, where the file does not say."`
	Tag     []string          `help:"Tags for all links, separated by commas."`
	DryRun  bool              `help:"Read everything, say what is wrong, and make nothing."`
	Results string            `type:"path" help:"File for the result of each row: CSV if it ends in .csv, else JSON Lines. Default: FILE.results.jsonl."`
	Resume  bool              `help:"Go on with an import that was interrupted."`
	Data    string            `type:"path" help:"Data folder of a server that is stopped: an export of curt goes in as it is, with ids, versions, times and deleted links."`
}

// Run makes a link of each row of a file. Rows that cannot be made have their reason in
// the results; the others are made all the same.
func (c *importCmd) Run(ctx context.Context, t terminal) error {
	if c.File == "-" && c.Results == "" && !c.DryRun {
		return usageError("standard input has no name: say --results")
	}
	if c.Data != "" {
		if err := c.takes(c.Data); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	in, total, err := c.open(t)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer in.Close() //nolint:errcheck // only read
	i := &importer{importCmd: c, t: t, total: total, progress: newProgress(t, total)}
	err = i.run(ctx, in)
	i.progress.clear()
	return err
}

func (c *importCmd) open(t terminal) (in io.ReadCloser, total int64, err error) {
	if c.File == "-" {
		return io.NopCloser(t.in), size(t.in), nil
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, 0, err
	}
	return f, size(f), nil
}

// importer is one run of the command.
type importer struct {
	*importCmd

	t        terminal
	total    int64 // bytes of the file; 0 = unknown
	progress *progress
	results  *results
	sink     sink

	began time.Time
	from  int64 // where this run began in the file
	told  int   // failures that were printed
}

// sink makes links.
type sink interface {
	// put makes the links of the rows that can be read and returns an outcome for each
	// row. Rows that are put again under the same key are made once. Without a key an
	// earlier run may have made them, too long ago for it to be told. The error is for
	// all of them.
	put(ctx context.Context, rows []exchange.Row, key string) ([]outcome, error)
	close() error
}

// outcome is what became of a row.
type outcome struct {
	Line     int    `json:"line"`
	Code     string `json:"short_code,omitempty"`
	ShortURL string `json:"short_url,omitempty"`
	Skipped  string `json:"skipped,omitempty"`
	Error    string `json:"error,omitempty"`
}

func (i *importer) run(ctx context.Context, in io.Reader) (err error) {
	if i.results, err = i.openResults(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.results.close()) }()
	reader, err := i.reader(in)
	if err != nil {
		return fmt.Errorf("import %s: %w", i.File, err)
	}
	if i.sink, err = i.openSink(ctx); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, i.sink.close()) }()
	i.began, i.from = time.Now(), i.results.state.Done
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the reader ends with the command
	return i.work(ctx, ahead(ctx, reader))
}

// reader understands the file, from where the run before has come.
func (i *importer) reader(in io.Reader) (exchange.Reader, error) {
	format := i.Format
	if format == "auto" {
		var err error
		if format, in, err = exchange.Sniff(in); err != nil {
			return nil, err
		}
	}
	if format == "jsonl" {
		if len(i.Map) > 0 {
			return nil, usageError("--map is for CSV")
		}
		return exchange.NewJSON(in, i.results.state.Done)
	}
	r, err := exchange.NewCSV(in, i.results.state.Done, i.Map)
	if err != nil {
		return nil, err
	}
	header, used := r.Header()
	i.t.note("curt: %s", strings.Join(used, ", "))
	if len(header.Ignored) > 0 {
		i.t.note("curt: ignored: %s", strings.Join(header.Ignored, ", "))
	}
	return r, nil
}

func (i *importer) openSink(ctx context.Context) (sink, error) {
	switch {
	case i.DryRun:
		return newChecker(i.Data != "", i.Tag, time.Now()), nil
	case i.Data != "":
		return openFolder(ctx, i.Data, newLogger(i.t, "warn"))
	}
	api, err := i.client()
	if err != nil {
		return nil, err
	}
	return &remote{api: api, domain: i.Domain, tags: i.Tag}, nil
}

// batch is some rows, or the error that ends the file.
type batch struct {
	rows []exchange.Row
	err  error
}

// ahead reads the batch after the one that is being made. Its goroutine ends with the
// file or ctx; only the end of the file closes the channel.
func ahead(ctx context.Context, r exchange.Reader) <-chan batch {
	batches := make(chan batch, 1)
	go func() {
		for {
			b := readBatch(r)
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

func readBatch(r exchange.Reader) (b batch) {
	bytes := 0
	for len(b.rows) < maxRows && bytes < maxRowBytes {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return b
		}
		if err != nil {
			b.err = err
			return b
		}
		b.rows = append(b.rows, row)
		bytes += len(row.Record.LongURL) + len(row.Record.Fallback) + len(row.Record.Title) + 256
	}
	return b
}

// work makes the links of batch after batch. Ctrl-C ends it after the one under way.
func (i *importer) work(ctx context.Context, batches <-chan batch) error {
	for {
		select {
		case <-ctx.Done():
			return i.stopped(errInterrupted)
		case b, more := <-batches:
			if !more {
				return i.finish()
			}
			if len(b.rows) > 0 {
				if err := i.make(ctx, b.rows); err != nil {
					return i.stopped(err)
				}
			}
			if b.err != nil {
				return i.stopped(b.err)
			}
		}
	}
}

// make makes the links of a batch, in one request unless a limit does not let so many
// pass at once. What it is about to do is on the disk before, and what became of it
// after: a run that goes on sends the request that is in doubt again as it was.
func (i *importer) make(ctx context.Context, rows []exchange.Row) error {
	for most := len(rows); len(rows) > 0; {
		n, key, doubtful := i.next(rows, most)
		if err := i.results.sending(rows[n-1], doubtful); err != nil {
			return err
		}
		// The server may have begun when Ctrl-C comes: it is let finish.
		outcomes, err := i.sink.put(context.WithoutCancel(ctx), rows[:n], key)
		wait := refusedFor(err)
		switch {
		case err == nil:
			if err := i.results.sent(rows[n-1], outcomes); err != nil {
				return err
			}
			i.tell(outcomes)
			rows, most = rows[n:], min(2*most, maxRows)
		case n > 1 && (tooMany(err) || wait >= 0 && !doubtful): // fewer may pass
			most = n / 2
			i.results.state.Sent = i.results.state.Done // nothing was made
		case wait >= 0:
			if err := i.wait(ctx, wait); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// next returns how many rows to put, under which key, and whether an earlier run may have
// put them: then just as it did.
func (i *importer) next(rows []exchange.Row, most int) (n int, key string, doubtful bool) {
	s := &i.results.state
	if doubtful = rows[0].End <= s.Sent; !doubtful {
		n = min(most, len(rows))
		return n, s.key(rows[n-1]), false
	}
	for n < len(rows) && rows[n].End <= s.Sent {
		n++
	}
	if time.Since(s.SentAt).Abs() < keyLife {
		key = s.key(rows[n-1])
	}
	return n, key, true
}

func (i *importer) wait(ctx context.Context, d time.Duration) error {
	i.progress.clear()
	i.t.note("curt: the server asks to wait %s", d)
	return sleep(ctx, d)
}

// mostTold is how many failures are printed; all of them are in the results.
const mostTold = 20

func (i *importer) tell(outcomes []outcome) {
	for _, o := range outcomes {
		if o.Error == "" || i.told > mostTold {
			continue
		}
		i.progress.clear()
		if i.told++; i.told > mostTold {
			i.t.note("curt: --results keeps the further failures")
			continue
		}
		i.t.complain(fmt.Errorf("line %d: %s", o.Line, o.Error))
	}
	s := &i.results.state
	text := s.summary()
	if took := time.Since(i.began); took > time.Second && s.Done > i.from {
		rate := float64(s.Done-i.from) / took.Seconds()
		text += fmt.Sprintf(", %.0f rows/s", float64(s.rows()-s.before)/took.Seconds())
		if i.total > 0 {
			text += fmt.Sprintf(", %s left", time.Duration(float64(i.total-s.Done)/rate*float64(time.Second)).Round(time.Second))
		}
	}
	i.progress.show(time.Now(), s.Done, text)
}

func (i *importer) finish() error {
	i.progress.clear()
	s := &i.results.state
	if err := i.results.done(); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	text := s.summary()
	if i.DryRun {
		text = fmt.Sprintf("%d rows can be read, %d cannot", s.Made+s.Skipped, s.Failed)
	}
	if i.results.name != "" {
		text += "; results in " + i.results.name
	}
	i.t.note("%s", text)
	if s.Failed > 0 {
		return saidError{fmt.Errorf("%d failed", s.Failed)}
	}
	return nil
}

func (i *importer) stopped(err error) error {
	i.progress.clear()
	s := &i.results.state
	advice := "--resume goes on there"
	if i.DryRun {
		advice = "nothing was made"
	}
	if errors.As(err, new(*client.Problem)) || errors.Is(err, client.ErrNoAnswer) || errors.Is(err, errInterrupted) {
		return fmt.Errorf("import stopped after line %d (%s; %s): %w", s.Line, s.summary(), advice, err)
	}
	return fmt.Errorf("import stopped after line %d (%s): %w", s.Line, s.summary(), err)
}

// sleep waits for d, or fails as soon as the command is interrupted.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errInterrupted
	}
}
