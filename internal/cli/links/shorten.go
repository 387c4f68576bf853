package links

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"curt.example/client"
	"curt/internal/cli"
	"curt/internal/shorten/create"
)

// Shorten is the command "curt shorten".
type Shorten struct {
	cli.API

	URL []string `arg:"" optional:"" name:"url" help:"Long URLs. Without them, or with -, read from standard input: one URL per line, or URL, tab, alias."`
	createFlags
	JSON bool `name:"json" help:"Print each link as JSON."`
}

// Run creates a link per row. The output has one line per row, in order: empty where the link
// was not created, with the reason in the error stream.
func (c *Shorten) Run(ctx context.Context, t cli.Terminal) error {
	template, err := c.template(c.URL)
	if err != nil {
		return err
	}
	api, err := c.Client()
	if err != nil {
		return err
	}
	fromInput := len(c.URL) == 0 || slices.Equal(c.URL, []string{"-"})
	if len(c.URL) == 0 && cli.IsTerminal(t.In) {
		return cli.UsageError("expected a URL, or - to read one per line")
	}
	b := &bulk{api: api, template: template, json: c.JSON, t: t, patient: fromInput}
	if !fromInput {
		b.progress = &cli.Progress{}
		return b.run(ctx, given(c.URL, b.template.CustomAlias))
	}
	b.progress = cli.NewProgress(t, cli.Remaining(t.In))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the reader ends with the command
	return b.run(ctx, input(ctx, t.In))
}

// bulk creates a link per row, with as many rows in a request as have been read. It belongs to
// one goroutine.
type bulk struct {
	api      *client.Client
	template client.NewLink
	json     bool
	t        cli.Terminal
	progress *cli.Progress
	patient  bool // wait for the rate limit

	created, failed, seen int
}

// run takes rows until there are none. Ctrl-C ends it after the current request, so that the
// counts it prints are exact.
func (b *bulk) run(ctx context.Context, rows <-chan row) error {
	most := create.MaxMany
	var waiting []row
	for {
		var err error
		if len(waiting) == 0 {
			if waiting, err = next(ctx, rows, most); err != nil {
				return b.stopped(err)
			}
			if len(waiting) == 0 {
				return b.done()
			}
		}
		n := min(most, len(waiting))
		results, err := b.request(ctx, waiting[:n])
		wait := refusedFor(err)
		switch {
		case err == nil:
			if err := b.print(waiting[:n], results); err != nil {
				return err
			}
			waiting, most = waiting[n:], min(2*most, create.MaxMany)
		case n > 1 && (wait >= 0 || tooMany(err)): // fewer may pass
			most = n / 2
		case wait >= 0 && b.patient:
			if err := b.pause(ctx, wait); err != nil {
				return b.stopped(err)
			}
		default:
			return b.stopped(err)
		}
	}
}

// next waits for a row and takes those already read, up to most.
func next(ctx context.Context, rows <-chan row, most int) (list []row, err error) {
	bytes := 0
	take := func(r row) {
		list, bytes = append(list, r), bytes+len(r.url)+len(r.alias)
	}
	if ctx.Err() != nil {
		return nil, cli.ErrInterrupted
	}
	select {
	case r, ok := <-rows:
		switch {
		case !ok && ctx.Err() != nil: // ctx also ends the reader
			return nil, cli.ErrInterrupted
		case !ok:
			return nil, nil
		}
		take(r)
	case <-ctx.Done():
		return nil, cli.ErrInterrupted
	}
	for len(list) < most && bytes < maxRowBytes {
		select {
		case r, ok := <-rows:
			if !ok {
				return list, nil
			}
			take(r)
		default:
			return list, nil
		}
	}
	return list, nil
}

// request creates the links of the rows that have a URL. Ctrl-C does not cancel it: the server
// may have begun.
func (b *bulk) request(ctx context.Context, rows []row) ([]client.Result, error) {
	var links []client.NewLink
	for _, r := range rows {
		if r.url != "" && r.err == nil {
			l := b.template
			l.LongURL, l.CustomAlias = r.url, r.alias
			links = append(links, l)
		}
	}
	if len(links) == 0 {
		return nil, nil
	}
	return b.api.CreateMany(context.WithoutCancel(ctx), links)
}

// print writes a line for each row.
func (b *bulk) print(rows []row, results []client.Result) error {
	b.progress.Clear()
	out := bufio.NewWriter(b.t.Out)
	for _, r := range rows {
		var created *client.Link
		if r.url != "" && r.err == nil {
			if results[0].Link != nil {
				created = results[0].Link
			} else {
				r.err = explained(results[0].Problem)
			}
			results = results[1:]
		}
		b.seen++
		switch {
		case created != nil:
			b.created++
			if created.Safety == "warn" || created.Safety == "quarantined" {
				b.t.Complain(fmt.Errorf("%s: visitors see a warning first, because the URL looks unsafe", r.name))
			}
			if created.State == "pending" {
				b.t.Note("curt: %s: accepted, pending until it is written", r.name)
			}
		case r.err != nil:
			b.failed++
			b.t.Complain(fmt.Errorf("%s: %w", r.name, r.err))
		}
		if err := b.line(out, created); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	b.progress.Show(time.Now(), rows[len(rows)-1].end, fmt.Sprintf("%d created, %d failed", b.created, b.failed))
	return nil
}

// explained returns the problem of a row. A response with neither link nor problem is an error.
func explained(p *client.Problem) error {
	if p == nil {
		return errors.New("the response does not include it")
	}
	return p
}

func (b *bulk) line(out *bufio.Writer, created *client.Link) error {
	var err error
	switch {
	case b.json && created == nil:
		_, err = out.WriteString("null\n")
	case b.json:
		err = cli.PrintJSON(out, created)
	case created == nil:
		err = out.WriteByte('\n')
	default:
		_, err = fmt.Fprintln(out, cli.Plain(created.ShortURL))
	}
	return err
}

// refusedFor returns the Retry-After of a rate limit, -1 for other errors.
func refusedFor(err error) time.Duration {
	problem, ok := errors.AsType[*client.Problem](err)
	if !ok || problem.Status != http.StatusTooManyRequests {
		return -1
	}
	return max(problem.RetryAfter, time.Second)
}

// tooMany reports that the request had more rows than a limit of the key ever allows at once.
func tooMany(err error) bool {
	problem, ok := errors.AsType[*client.Problem](err)
	return ok && problem.Status == http.StatusBadRequest && problem.Field == "links"
}

func (b *bulk) pause(ctx context.Context, d time.Duration) error {
	b.progress.Clear()
	b.t.Note("curt: %d created, %d failed; rate limited, retrying in %s", b.created, b.failed, d)
	return cli.Sleep(ctx, d)
}

// done ends the command; each failure is printed already.
func (b *bulk) done() error {
	b.progress.Clear()
	if b.failed == 0 {
		return nil
	}
	err := fmt.Errorf("%d of %d failed", b.failed, b.seen)
	if b.seen > 1 {
		b.t.Complain(err)
	}
	return cli.Reported(err)
}

// stopped adds the progress of the command to err.
func (b *bulk) stopped(err error) error {
	b.progress.Clear()
	if !b.patient { // a command line is short
		return fmt.Errorf("shorten: %w", err)
	}
	how := fmt.Sprintf("stopped after line %d: %d created, %d failed", b.seen, b.created, b.failed)
	if errors.Is(err, client.ErrNoAnswer) && (b.template.Dedupe == nil || !*b.template.Dedupe) {
		how += "; some of the next lines may have been created"
	}
	return fmt.Errorf("%s: %w", how, err)
}

const (
	// maxRowBytes keeps a request below its 16 MiB even if JSON needs six bytes for each of a
	// URL.
	maxRowBytes = 2 << 20
)

// row is one link to create.
type row struct {
	name  string // for error messages: the line, or the URL of the command line
	url   string // "" = an empty line, which creates nothing
	alias string
	err   error // the row is invalid
	end   int64 // offset in the input after the row
}

// given returns the rows of a command line.
func given(urls []string, alias string) <-chan row {
	rows := make(chan row, len(urls))
	for _, u := range urls {
		r := row{name: u, url: u, alias: alias}
		if strings.TrimSpace(u) == "" {
			r.name, r.url, r.err = "URL "+strconv.Quote(u), "-", errors.New("expected a URL, this one is empty")
		}
		rows <- r
	}
	close(rows)
	return rows
}

// input reads rows from r: "URL" or "URL<tab>alias". Its goroutine ends with r or ctx; while
// blocked on a terminal or a pipe, with the process.
func input(ctx context.Context, r io.Reader) <-chan row {
	rows := make(chan row, create.MaxMany)
	go func() {
		defer close(rows)
		lines := bufio.NewReaderSize(r, cli.MaxLine)
		for number, at := 1, int64(0); ; number++ {
			line, n, err := readLine(lines)
			at += n
			if n == 0 && err != nil {
				if err == io.EOF { //nolint:errorlint // readLine returns it as it is
					return
				}
				line = nil
			}
			next := parseRow(number, string(line), at)
			if err != nil && !errors.Is(err, io.EOF) {
				next.url, next.err = "-", err
			}
			select {
			case rows <- next:
			case <-ctx.Done():
				return
			}
			if err != nil && !errors.Is(err, errLongLine) {
				return
			}
		}
	}()
	return rows
}

var errLongLine = fmt.Errorf("is longer than %d bytes", cli.MaxLine)

// readLine returns a line and its length in bytes; for a line that is too long, errLongLine.
func readLine(r *bufio.Reader) (line []byte, n int64, err error) {
	line, err = r.ReadSlice('\n')
	n = int64(len(line))
	long := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		n += int64(len(line))
	}
	if long && (err == nil || errors.Is(err, io.EOF)) {
		return nil, n, errLongLine
	}
	return line, n, err
}

// parseRow reads a line. A byte order mark at the beginning of the input is skipped.
func parseRow(number int, line string, end int64) row {
	r := row{name: fmt.Sprintf("line %d", number), end: end}
	if number == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	u, alias, two := strings.Cut(strings.Trim(line, " \r\n"), "\t")
	r.url, r.alias = strings.TrimSpace(u), strings.TrimSpace(alias)
	switch {
	case r.url == "" && r.alias == "": // an empty line, even with tabs
	case !utf8.ValidString(line):
		r.err = client.ErrText
	case r.url == "" || (two && r.alias == "") || strings.Contains(alias, "\t"):
		r.url, r.err = "-", errors.New("expected URL, or URL, tab, alias")
	}
	return r
}
