// Command clickhouse measures what clicks in ClickHouse take: bytes of a click on the disk,
// by column; rows of a second; the time of statistics of one link with very many clicks. It
// starts a server of its own by scripts/services, from the project's folder:
//
//	go -C bench run ./cmd/clickhouse -root .. -clicks 2000000 -hot 100000000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "clickhouse:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("clickhouse", flag.ContinueOnError)
	root := flags.String("root", ".", "the project's folder")
	clicks := flags.Int("clicks", 1_000_000, "clicks of many links, one by one")
	links := flags.Int("links", 100_000, "links that they are on")
	hot := flags.Int("hot", 100_000_000, "clicks of one link, over a year, added up only")
	asks := flags.Int("asks", 100, "questions of each kind")
	if err := flags.Parse(args); err != nil {
		return err
	}
	server, err := begin(ctx, *root)
	if err != nil {
		return err
	}
	defer server.end()
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: server.url})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	if err := pace(ctx, out, server, store, *links); err != nil {
		return err
	}
	if err := single(ctx, out, server, store, *clicks, *links); err != nil {
		return err
	}
	return busy(ctx, out, server, store, *hot, *asks)
}

// pace measures how fast blocks are taken, of clicks as they come 5,000 a second.
func pace(ctx context.Context, out io.Writer, s *server, store *clickhouse.Store, links int) error {
	const each, second = 300_000, 5_000
	for _, inserters := range []int{1, 2} {
		for _, block := range []int{10_000, 50_000} {
			source := newSource(links)
			blocks := make(chan []clickdb.Row, each/block)
			for range each / block {
				blocks <- source.rows(block, 24*60*60*second)
			}
			close(blocks)
			begin, theirs, own := time.Now(), s.processor(), ours()
			failed := make(chan error, inserters)
			for range inserters {
				go func() {
					var err error
					for rows := range blocks {
						err = errors.Join(err, store.Insert(ctx, fmt.Sprint("pace:", inserters, block, rows[0].ID.Sequence), rows))
					}
					failed <- err
				}()
			}
			for range inserters {
				if err := <-failed; err != nil {
					return err
				}
			}
			rate := each / time.Since(begin).Seconds()
			_, _ = fmt.Fprintf(out, "%d inserting at once, blocks of %d: %.0f clicks a second through all views, for each %.1f µs of the server, merging included, and %.1f µs of ours %s\n",
				inserters, block, rate, micros(s.processor()-theirs, each), micros(ours()-own, each), bar(rate >= 50_000, ">= 50000 a second"))
			if err := empty(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// micros is the time of one of n, in microseconds.
func micros(d time.Duration, n int) float64 { return float64(d.Microseconds()) / float64(n) }

// empty empties all tables.
func empty(ctx context.Context, s *server) error {
	for _, table := range []string{"clicks", "minutes", "quarters", "days", "day_values", "settled"} {
		if _, err := s.ask(ctx, "TRUNCATE TABLE curt."+table); err != nil {
			return err
		}
	}
	return nil
}

// single fills in clicks of a day and says what they take.
func single(ctx context.Context, out io.Writer, s *server, store *clickhouse.Store, n, links int) error {
	const block = 50_000
	source := newSource(links)
	for done := 0; done < n; done += block {
		if err := store.Insert(ctx, fmt.Sprint("bench:", done), source.rows(min(block, n-done), n)); err != nil {
			return err
		}
	}
	begin := time.Now()
	if _, err := store.FinalizeDays(ctx, begin); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\n%d clicks on %d links within a day: settled in %.1f s\n", n, links, time.Since(begin).Seconds())
	if _, err := s.ask(ctx, "OPTIMIZE TABLE curt.clicks FINAL"); err != nil {
		return err
	}
	const size = `SELECT round(sum(bytes_on_disk) / sum(rows), 2) FROM system.parts WHERE database = 'curt' AND table = 'clicks' AND active`
	answer, err := s.ask(ctx, size)
	if err != nil {
		return err
	}
	bytes, err := strconv.ParseFloat(strings.TrimSpace(answer), 64)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%.2f bytes of a click on the disk, merged %s\n", bytes, bar(bytes <= 25, "<= 25"))
	for _, q := range []struct{ title, query string }{
		{"by column, without marks and keys", fmt.Sprintf(`SELECT name, round(data_compressed_bytes / %d, 3) FROM system.columns
			WHERE database = 'curt' AND table = 'clicks' ORDER BY data_compressed_bytes DESC`, n)},
		{"by table, for each click", fmt.Sprintf(`SELECT table, round(sum(bytes_on_disk) / %d, 2), sum(rows) FROM system.parts
			WHERE database = 'curt' AND active GROUP BY table ORDER BY 2 DESC`, n)},
	} {
		answer, err := s.ask(ctx, q.query)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "\n%s:\n%s", q.title, answer)
	}
	return empty(ctx, s)
}
