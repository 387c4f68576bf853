package clickdb

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"text/template"
	"time"

	"curt/internal/clicks"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// dedupWindow is how many blocks each table remembers. A block is one for every partition
// of the table that it has rows of, mostly one or two. Of 128 Kafka partitions, with a block
// each two seconds, 50,000 are six minutes: longer than it takes until somebody else has a
// partition and inserts its last block again. ClickHouse keeps them in memory, some 5 MB.
const dedupWindow = 50_000

// versionTable is where it is written down which migrations have run.
const versionTable = `CREATE TABLE IF NOT EXISTS migrations (version UInt32, at DateTime('UTC'))
ENGINE = MergeTree ORDER BY version`

// statements returns what a migration runs, in order. Each may run again.
func statements(name string) ([]string, error) {
	funcs := template.FuncMap{
		"window": func() string { return fmt.Sprintf("non_replicated_deduplication_window = %d", dedupWindow) },
		"counts": Aggregates, "select": selectOf,
	}
	text, err := migrationFiles.ReadFile("migrations/" + name)
	if err != nil {
		return nil, fmt.Errorf("read migration: %w", err)
	}
	t, err := template.New(name).Funcs(funcs).Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("read migration %s: %w", name, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return nil, fmt.Errorf("render migration %s: %w", name, err)
	}
	var all []string
	for s := range strings.SplitSeq(b.String(), ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all, nil
}

// selectOf returns the query of a table's view.
func selectOf(table string) (string, error) {
	for _, a := range Aggregates() {
		if a.Table == table {
			return a.Query("clicks"), nil
		}
	}
	return "", fmt.Errorf("no table %q", table)
}

// Aggregate is a table that a view fills with what clicks add up to.
type Aggregate struct {
	Table     string
	Partition string        // what is read at once lies in few; what goes soon is in one for each day
	TTL       string        // "" = for good
	Retain    time.Duration // what TTL says
	Width     string        // the function that gives the bucket of a click's time
	Daily     bool          // buckets are UTC days
}

// Aggregates are all of them. Minutes are kept a day longer than they are asked for.
func Aggregates() []Aggregate {
	return []Aggregate{
		{Table: "minutes", Partition: "toYYYYMMDD(at)", TTL: "at + toIntervalDay(3)", Retain: 3 * Day, Width: "toStartOfMinute"},
		{Table: "quarters", Partition: "toYYYYMM(at)", Width: "toStartOfFifteenMinutes"},
		{Table: "days", Partition: "toYear(at)", Width: "toStartOfDay", Daily: true},
	}
}

// Gone reports whether what was added up of an hour may be gone.
func (a Aggregate) Gone(hour, now time.Time) bool {
	return a.Retain > 0 && hour.Before(now.Add(-a.Retain))
}

// VisitorsMerged counts the visitors of states: registers of 14 bits, as in the embedded
// shape.
const VisitorsMerged = "uniqCombined64IfMerge(14)(visitors)"

// keysOf are what a click counts for: its link, and its workspace as internal/clicks
// names groups.
const keysOf = `arrayJoin(if(workspace = '', [(CAST(domain, 'String'), code)], [(CAST(domain, 'String'), code), ('*', CAST(workspace, 'String'))])) AS key`

// Query returns what adds up the clicks of a source to the rows of the table, grouped. What
// counts is what rollup.Counts says.
func (a Aggregate) Query(source string) string {
	return fmt.Sprintf(`SELECT key.1 AS domain, key.2 AS code, at,
    toInt64(countIf(counted)) AS clicks,
    toInt64(countIf(counted AND NOT bot)) AS humans,
    toInt64(countIf(preview AND outcome IN (%[4]d, %[7]d))) AS previews,
    toInt64(countIf(NOT preview AND outcome = %[5]d)) AS fallbacks,
    toInt64(countIf(NOT preview AND outcome = %[6]d)) AS refused,
    min(time) AS first_seen,
    max(if(counted, time, toDateTime64(0, 3, 'UTC'))) AS last_clicked,
    uniqCombined64IfState(14)(visitor, toUInt8(counted AND outcome = %[4]d AND NOT bot AND visitor != 0)) AS visitors
FROM (
    SELECT %[1]s, toDateTime(%[2]s(time, 'UTC'), 'UTC') AS at, time, outcome, preview, bot, visitor,
        NOT preview AND outcome IN (%[4]d, %[7]d) AS counted
    FROM %[3]s
)
GROUP BY domain, code, at`, keysOf, a.Width, source, clicks.Redirected, clicks.FellBack, clicks.Refused, clicks.Orphan)
}

// migrate runs the migrations that the database has not seen, in the order of their
// numbers. It takes no lock: statements may run again, so that several processes which
// start at once come to the same. One that ends in between is gone on with by the next.
func (d *DB) migrate(ctx context.Context) error {
	if err := d.Conn.Exec(ctx, versionTable); err != nil {
		return fmt.Errorf("create the table of migrations: %w", err)
	}
	var done uint32
	if err := d.Conn.QueryRow(ctx, "SELECT max(version) FROM migrations").Scan(&done); err != nil {
		return fmt.Errorf("read the table of migrations: %w", err)
	}
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	for _, file := range files { // sorted by name
		name := strings.TrimPrefix(file, "migrations/")
		number, err := strconv.ParseUint(name[:5], 10, 32)
		if err != nil {
			return fmt.Errorf("migration %s has no number: %w", name, err)
		}
		if number <= uint64(done) {
			continue
		}
		if err := d.run(ctx, name); err != nil {
			return err
		}
		if err := d.Conn.Exec(ctx, "INSERT INTO migrations SELECT toUInt32($1), now()", number); err != nil {
			return fmt.Errorf("record migration %s: %w", name, err)
		}
	}
	return nil
}

// migrated reports whether the database has seen every migration. It changes nothing.
func migrated(ctx context.Context, d *DB) (bool, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return false, fmt.Errorf("list migrations: %w", err)
	}
	var there, done uint64
	err = d.Conn.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'migrations'").Scan(&there)
	if err == nil && there > 0 {
		err = d.Conn.QueryRow(ctx, "SELECT toUInt64(max(version)) FROM migrations").Scan(&done)
	}
	if err != nil {
		return false, fmt.Errorf("read the table of migrations: %w", err)
	}
	newest, err := strconv.ParseUint(strings.TrimPrefix(files[len(files)-1], "migrations/")[:5], 10, 32)
	return err == nil && done >= newest, err
}

func (d *DB) run(ctx context.Context, name string) error {
	all, err := statements(name)
	if err != nil {
		return err
	}
	for _, statement := range all {
		if err := d.Conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return nil
}
