package movedata

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"curt/internal/cli"
	"curt/internal/exchange"
	"curt/internal/transfer"
)

// endless is a file whose end is never reached.
type endless struct{}

func (endless) Next(int) ([]exchange.Row, error) { return make([]exchange.Row, 1), nil }
func (endless) Take(int)                         {}

// What Ctrl-C stops is not at its end: an import that takes it for done forgets the rest.
func TestAnInterruptIsNotTheEndOfTheFile(t *testing.T) {
	for range 20 { // which of two that are ready comes first is drawn
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			batches := ahead(ctx, endless{})
			synctest.Wait()
			cancel()
			for range 1000 {
				synctest.Wait()
				select {
				case _, more := <-batches:
					if !more {
						t.Fatal("the file seems to end where it was interrupted")
					}
					continue
				default:
				}
				return
			}
			t.Error("it is read on after an interrupt")
		})
	}
}

// sinkOf ends each Put with an error, or takes all rows.
type sinkOf struct {
	err  error
	rows int
}

func (s *sinkOf) Put(_ context.Context, rows []exchange.Row, _ string) ([]transfer.Outcome, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.rows += len(rows)
	outcomes := make([]transfer.Outcome, len(rows))
	for i := range rows {
		outcomes[i] = transfer.Outcome{Line: rows[i].Line, Code: "x"}
	}
	return outcomes, nil
}

// An import whose first rows may have been stored can be resumed, as one that was stopped later.
func TestAnImportThatStopsAtItsFirstRowIsResumed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "links.csv")
	if err := os.WriteFile(file, []byte("long_url\nhttps://example.com/1\nhttps://example.com/2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(sink transfer.Sink, resume bool) (err error) {
		terminal := cli.Terminal{In: bytes.NewReader(nil), Out: t.Output(), Err: t.Output()}
		c := &Import{File: file, Format: "auto", Resume: resume}
		in, total, err := c.open(terminal)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close() //nolint:errcheck // only read
		i := &importer{Import: c, t: terminal, total: total, progress: cli.NewProgress(terminal, total)}
		if i.results, err = i.openResults(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, i.results.close()) }()
		rows, err := i.read(in, i.results.state.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return i.work(t.Context(), ahead(t.Context(), rows), sink)
	}
	away := errors.New("away")
	for _, resume := range []bool{false, true} {
		if err := run(&sinkOf{err: away}, resume); !errors.Is(err, away) {
			t.Errorf("resumed %t: %v", resume, err)
		}
	}
	all := &sinkOf{}
	if err := run(all, true); err != nil || all.rows != 2 {
		t.Errorf("resumed: %d rows, %v", all.rows, err)
	}
}
