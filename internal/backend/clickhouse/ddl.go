package clickhouse

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// dedupWindow is how many blocks each table remembers. A block is one for every partition
// of the table that it has rows of, mostly one or two. Of 128 Kafka partitions, with a block
// each two seconds, 50,000 are six minutes: longer than it takes until somebody else has a
// partition and inserts its last block again. ClickHouse keeps them in memory, some 5 MB.
const dedupWindow = 50_000

// Replicas describe a cluster of ClickHouse whose tables are copied between servers. The
// tables are on one shard.
type Replicas struct {
	Cluster string // of ON CLUSTER; letters, digits, _ and -
}

// engine spells the engine of a table. The servers' own macros name shard and replica.
func (r *Replicas) engine(name string) string {
	if r == nil {
		return name
	}
	return "Replicated" + name + "('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')"
}

func (r *Replicas) cluster() string {
	if r == nil {
		return ""
	}
	return " ON CLUSTER `" + r.Cluster + "`"
}

func (r *Replicas) window() string {
	setting := "replicated_deduplication_window"
	if r == nil {
		setting = "non_" + setting
	}
	return fmt.Sprintf("%s = %d", setting, dedupWindow)
}

// versionTable is where it is written down which migrations have run.
func versionTable(r *Replicas) string {
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS migrations%s (version UInt32, at DateTime('UTC'))
ENGINE = %s ORDER BY version`, r.cluster(), r.engine("MergeTree"))
}

// statements returns what a migration runs, in order. Each may run again.
func statements(name string, replicas *Replicas) ([]string, error) {
	funcs := template.FuncMap{
		"engine": replicas.engine, "cluster": replicas.cluster, "window": replicas.window,
		"counts": aggregates, "select": selectOf,
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
		return nil, fmt.Errorf("write out migration %s: %w", name, err)
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
	for _, a := range aggregates() {
		if a.Table == table {
			return a.query("clicks"), nil
		}
	}
	return "", fmt.Errorf("no table %q", table)
}
