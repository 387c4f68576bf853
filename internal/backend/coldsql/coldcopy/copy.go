package coldcopy

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"curt/internal/backend/coldsql"
)

// Source is a curt.db as it was at one moment.
type Source interface {
	Cold(f func(coldsql.Tx) error) error
}

// Copier copies tables. It belongs to one goroutine, and nobody else writes the tables of the
// database meanwhile.
type Copier struct {
	from Source
	to   coldsql.DB

	pages int                         // rows that are read together
	back  bool                        // the folder was filled from the database, with links
	known map[string]map[string]entry // by table and key: what the database has
}

// entry is a row of the database.
type entry struct {
	digest Digest
	key    []any
}

// New returns what copies from a folder to a database.
func New(from Source, to coldsql.DB) *Copier {
	return &Copier{from: from, to: to, pages: pageRows, known: map[string]map[string]entry{}}
}

const (
	pageRows  = 1000
	heavyRows = 32 // of a table with blobs of a megabyte
	batchRows = 200
	batchSize = 4 << 20
)

func (c *Copier) page(t *table) int {
	if t.name == "job_chunks" {
		return min(c.pages, heavyRows)
	}
	return c.pages
}

// names of the columns as a database reads them.
func (t *table) names(differing map[string]string) string {
	all := make([]string, len(t.columns))
	for i, c := range t.columns {
		if all[i] = c.name; differing[c.name] != "" {
			all[i] = differing[c.name] + " AS " + c.name
		}
	}
	return strings.Join(all, ", ")
}

func (t *table) keyNames() string {
	all := make([]string, t.key)
	for i := range all {
		all[i] = t.columns[i].name
	}
	return strings.Join(all, ", ")
}

// marks are $1, $2, … up to n.
func marks(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(all, ", ")
}

// sqlAll reads a table of curt.db, in the order of its key: of two rows that must not be there at
// once, the older one has ended when the newer one comes.
func (t *table) sqlAll() string {
	where := ""
	if t.where != "" {
		where = " WHERE " + t.where
	}
	return "SELECT " + t.names(t.sqlite) + " FROM " + t.name + where + " ORDER BY " + t.keyNames()
}

// sqlPage reads a page of a table of PostgreSQL.
func (t *table) sqlPage(first bool, rows int) string {
	where := ""
	if !first {
		where = " WHERE (" + t.keyNames() + ") > (" + marks(t.key) + ")"
	}
	return fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT %d", t.names(t.postgres), t.name, where, t.keyNames(), rows)
}

func (t *table) sqlPut() string {
	into, set := t.insert, []string{}
	if into == "" {
		into = "(" + t.names(nil) + ") VALUES (" + marks(len(t.columns)) + ")"
	}
	if t.numbers != "" {
		into = strings.Replace(into, ") VALUES", ") OVERRIDING SYSTEM VALUE VALUES", 1)
	}
	columns, _, _ := strings.Cut(strings.TrimPrefix(into, "("), ")")
	for _, name := range strings.Split(columns, ", ")[t.key:] {
		set = append(set, name+" = excluded."+name)
	}
	then := "NOTHING"
	if len(set) > 0 {
		then = "UPDATE SET " + strings.Join(set, ", ")
	}
	return "INSERT INTO " + t.name + " " + into + " ON CONFLICT (" + t.keyNames() + ") DO " + then
}

func (t *table) sqlDrop() string {
	return "DELETE FROM " + t.name + " WHERE (" + t.keyNames() + ") = (" + marks(t.key) + ")"
}

// Learn reads what the database has: of a move that was interrupted.
func (c *Copier) Learn(ctx context.Context) error {
	for _, t := range tables() {
		known := map[string]entry{}
		err := c.stored(ctx, &t, func(r *row) { known[r.key] = entry{r.digest, r.values[:t.key:t.key]} })
		if err != nil {
			return fmt.Errorf("read %s of the database: %w", t.name, err)
		}
		c.known[t.name] = known
	}
	return nil
}

// stored calls f with every row of a table of the database.
func (c *Copier) stored(ctx context.Context, t *table, f func(*row)) error {
	for after := []any(nil); ; {
		var page []row
		err := c.to.ReadMany(ctx, func(tx coldsql.Tx) error {
			page = page[:0]
			return tx.Each(t.sqlPage(after == nil, c.page(t)), func(values []driver.Value) error {
				r, err := t.read(values)
				page = append(page, r)
				return err
			}, after...)
		})
		if err != nil {
			return err
		}
		for i := range page {
			f(&page[i])
		}
		if len(page) < c.page(t) {
			return nil
		}
		after = page[len(page)-1].values[:t.key]
	}
}

// Sync writes what differs from what the database is known to have, and returns how many rows that
// were.
func (c *Copier) Sync(ctx context.Context) (changed int, err error) {
	for _, t := range tables() {
		n, err := c.sync(ctx, &t)
		changed += n
		if err != nil {
			return changed, fmt.Errorf("copy %s: %w", t.name, err)
		}
	}
	return changed, nil
}

func (c *Copier) sync(ctx context.Context, t *table) (changed int, err error) {
	gone, differs, err := c.compare(ctx, t)
	if err != nil || len(gone)+differs == 0 {
		return 0, err
	}
	b := &batch{to: c.to, table: t, known: c.known[t.name]}
	if err := b.drop(ctx, gone); err != nil { // before others take what they had to themselves
		return 0, err
	}
	err = c.each(ctx, t, func(r *row) error {
		if b.known[r.key].digest == r.digest {
			return nil
		}
		return b.add(ctx, *r)
	})
	if err == nil {
		err = b.flush(ctx)
	}
	if err == nil && t.numbers != "" {
		err = c.goOn(ctx, t)
	}
	return len(gone) + differs, err
}

// each calls f with every row of a table of the folder.
func (c *Copier) each(ctx context.Context, t *table, f func(*row) error) error {
	return c.from.Cold(func(tx coldsql.Tx) error {
		return tx.Each(t.sqlAll(), func(values []driver.Value) error {
			r, err := t.read(values)
			if err == nil {
				err = f(&r)
			}
			return errors.Join(err, ctx.Err())
		})
	})
}

// compare returns the keys of rows that are gone from the folder, and how many of it differ.
func (c *Copier) compare(ctx context.Context, t *table) (gone []entry, differs int, err error) {
	known, seen := c.known[t.name], map[string]bool{}
	if known == nil {
		known = map[string]entry{}
		c.known[t.name] = known
	}
	err = c.each(ctx, t, func(r *row) error {
		if known[r.key].digest != r.digest {
			differs++
		}
		seen[r.key] = true
		return nil
	})
	for key, e := range known {
		if !seen[key] && !t.seeded() {
			gone = append(gone, e)
		}
	}
	return gone, differs, err
}

// seeded reports a row that a migration of the database made: the folder has it as well, unless it
// is of an older release.
func (t *table) seeded() bool { return t.name == "workspaces" || t.name == "followers" }

// goOn has the numbers of a table go on behind the highest one.
func (c *Copier) goOn(ctx context.Context, t *table) error {
	statement := fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s', '%s'), greatest(1, max(%s))) FROM %s", t.name, t.numbers, t.numbers, t.name)
	return c.to.Change(ctx, 1, func(tx coldsql.Tx) error {
		return tx.Each(statement, func([]driver.Value) error { return nil })
	})
}

// batch are rows that are written together.
type batch struct {
	to    coldsql.DB
	table *table
	known map[string]entry
	rows  []row
	size  int
}

func (b *batch) add(ctx context.Context, r row) error {
	b.rows = append(b.rows, r)
	for _, v := range r.values {
		switch x := v.(type) {
		case []byte:
			b.size += len(x)
		case coldsql.Text:
			b.size += len(x)
		}
	}
	if len(b.rows) < batchRows && b.size < batchSize {
		return nil
	}
	return b.flush(ctx)
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.rows) == 0 {
		return nil
	}
	args := make([][]any, len(b.rows))
	for i := range b.rows {
		args[i] = b.rows[i].values
	}
	statement := b.table.sqlPut()
	if err := b.to.Write(ctx, len(args), func(tx coldsql.Tx) error { return tx.ExecMany(statement, args) }); err != nil {
		return err
	}
	for i := range b.rows {
		r := &b.rows[i]
		b.known[r.key] = entry{r.digest, r.values[:b.table.key:b.table.key]}
	}
	b.rows, b.size = b.rows[:0], 0
	return nil
}

// drop deletes rows.
func (b *batch) drop(ctx context.Context, gone []entry) error {
	if len(gone) == 0 {
		return nil
	}
	args := make([][]any, len(gone))
	for i := range gone {
		args[i] = gone[i].key
	}
	statement := b.table.sqlDrop()
	if err := b.to.Write(ctx, len(args), func(tx coldsql.Tx) error { return tx.ExecMany(statement, args) }); err != nil {
		return err
	}
	for _, e := range gone {
		delete(b.known, keyOf(b.table, e.key))
	}
	return nil
}

// keyOf is row.key of a row with these values of its key.
func keyOf(t *table, values []any) string {
	text := appendText(nil, t.name)
	for _, v := range values {
		text = appendValue(text, v)
	}
	return string(text)
}

// ErrDiffers means that one side has other rows or links than the other.
var ErrDiffers = errors.New("both sides differ")

// Verify reads all tables on both sides and compares them. It returns the digest of all.
func (c *Copier) Verify(ctx context.Context) (all Digest, err error) {
	for _, t := range tables() {
		var here, there Digest
		seeds := map[string]Digest{}
		err := c.stored(ctx, &t, func(r *row) {
			there.Add(r.digest)
			if t.seeded() {
				seeds[r.key] = r.digest
			}
		})
		if err == nil {
			err = c.each(ctx, &t, func(r *row) error {
				if _, there := seeds[r.key]; there || !c.back || t.name != "workspaces" {
					here.Add(r.digest)
				}
				delete(seeds, r.key)
				return nil
			})
		}
		if err != nil {
			return all, fmt.Errorf("compare %s: %w", t.name, err)
		}
		all.Add(there)
		for _, d := range seeds {
			here.Add(d)
		}
		if here != there {
			return all, fmt.Errorf("%s has %d rows in the folder and %d in the database, or others: %w", t.name, here.Rows, there.Rows, ErrDiffers)
		}
	}
	return all, nil
}

// VerifyBack is Verify behind Back. Links that were stored since have made rows of those workspaces that have no
// accounts: they are no difference.
func (c *Copier) VerifyBack(ctx context.Context) (all Digest, err error) {
	c.back = true
	return c.Verify(ctx)
}

// Rows returns how many rows the database is known to have of all tables.
func (c *Copier) Rows() (n int64) {
	for _, known := range c.known {
		n += int64(len(known))
	}
	return n
}
