// Package codes is the command that compares the ways of generating codes. It generates codes of each in its own process, and
// changes nothing.
package codes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/settings"
)

// Compare is the command "curt codes compare".
type Compare struct {
	config.Flags
	cli.Format

	Existing *int64 `placeholder:"N" help:"Number of links that exist. Default: that of the link store."`
	Sample   int    `default:"100000" placeholder:"N" help:"Codes generated of each strategy, 1000 to 10000000."`
}

// countLimit bounds the question how many links there are.
const countLimit = 10 * time.Second

// Run prints a line per strategy.
func (c *Compare) Run(ctx context.Context, t cli.Terminal) error {
	switch {
	case c.Sample < 1000 || c.Sample > 10_000_000:
		return cli.UsageError("--sample: expected 1000 to 10000000")
	case c.Existing != nil && *c.Existing < 0:
		return cli.UsageError("--existing: expected 0 or more")
	}
	if err := c.Wrong(); err != nil {
		return err
	}
	existing, err := c.existing(ctx)
	if err != nil {
		return err
	}
	in := installation{
		existing: uint64(existing), length: c.CodeLength, plain: c.Snowflake == "plain", inUse: c.Codes, poolKeys: c.PoolKeys, sample: c.Sample,
	}
	t.Note("%d links exist, CURT_CODE_LENGTH=%d, CURT_CODES=%s", in.existing, in.length, in.inUse)
	table := cli.NewTable(t, c.Format, columns())
	var all []measured
	for _, s := range strategies(in) {
		m, err := measure(ctx, s, in)
		if err != nil {
			return err
		}
		switch {
		case m.Exhausted:
			t.Note("%s: all codes of %d characters are used, and creates are refused; increase CURT_CODE_LENGTH", m.Strategy, in.length)
		case s.grows && m.Length > in.length:
			t.Note("%s: new codes have up to %d characters, because shorter ones are taken", m.Strategy, m.Length)
		}
		all = append(all, m)
	}
	return table.Print(all)
}

// existing returns how many links there are.
func (c *Compare) existing(ctx context.Context) (int64, error) {
	if c.Existing != nil {
		return *c.Existing, nil
	}
	n, err := count(ctx, c.Config)
	if err != nil {
		return 0, fmt.Errorf("count the links (or use --existing): %w", c.Explain(err))
	}
	return n, nil
}

func columns() []cli.Column[measured] {
	number := func(format string, of func(*measured) float64) func(*measured) string {
		return func(m *measured) string { return fmt.Sprintf(format, of(m)) }
	}
	created := func(text func(*measured) string) func(*measured) string { // of new links, where there can be any
		return func(m *measured) string {
			if m.Exhausted {
				return "-"
			}
			return text(m)
		}
	}
	return []cli.Column[measured]{
		{Name: "STRATEGY", Text: func(m *measured) string { return m.Strategy }},
		{Name: "EXAMPLE", Text: created(func(m *measured) string { return m.Example })},
		{Name: "LENGTH", Text: created(func(m *measured) string { return strconv.Itoa(m.Length) })},
		{Name: "CODES/S", Text: number("%.0f", func(m *measured) float64 { return m.Rate })},
		{Name: "LOOK-UPS", Text: created(number("%.3f", func(m *measured) float64 { return m.Lookups }))},
		{Name: "WITHOUT FILTER", Text: created(number("%.3f", func(m *measured) float64 { return m.Unfiltered }))},
		{Name: "BYTES/CODE", Text: number("%.1f", func(m *measured) float64 { return m.PerCode })},
		{Name: "MEMORY", Text: number("%.1f MiB", func(m *measured) float64 { return m.Memory / (1 << 20) })},
		{Name: "GUESSES/LINK", Text: number("%.3g", func(m *measured) float64 { return m.Guesses })},
		{Name: "NEXT GUESSED", Text: number("%.1f %%", func(m *measured) float64 { return 100 * m.NextGuess })},
		{Name: "ORDER", Text: number("%.2f", func(m *measured) float64 { return m.Order })},
	}
}

// count returns about how many links there are, as far as that is known without reading them. A server may be running.
func count(ctx context.Context, cfg config.Config) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	if config.IsPostgres(cfg.Links) {
		n, err := pgdb.CountLinks(ctx, cfg.Links)
		if err != nil {
			return 0, settings.WrongDatabase("CURT_LINKS", cfg.Links, err)
		}
		return n, nil
	}
	path := filepath.Join(cfg.Data, "curt.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	held, err := datafolder.Held(cfg.Data)
	if err != nil {
		return 0, err
	}
	if !held { // a folder that lost something is for doctor: SQLite would leave less to notice it by
		if o, err := leases.Inspect(ctx, path); err != nil || o.Lost != nil {
			return 0, errors.Join(errors.New("the write-ahead log of curt.db lacks transactions; run curt doctor"), err)
		}
	}
	s, err := snapshot.Take(ctx, path)
	if err != nil {
		return 0, err
	}
	n := sqlite.SnapshotOf(s).MostLinks()
	return n, s.Close()
}
