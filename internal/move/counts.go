package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/postgres/counts"
	"curt/internal/backend/postgres/movein"
	"curt/internal/backend/sqlite/moveout"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/backend/sqlite/sqlitedb"
)

// countsCopy is the copy of clicks.db that is moved: of one moment, so that the click log from there
// on has the rest.
const countsCopy = "move-clicks.db"

func (m *move) countsCopy() string { return filepath.Join(m.Data, countsCopy) }

// rollups opens the statistics of the database, as the writer of the folder's click log.
func (m *move) rollups(ctx context.Context) (*counts.Rollups, error) {
	r, err := counts.Open(ctx, counts.Config{URL: m.accountsURL(), Instance: m.state.Name, Conns: 2, Log: m.Log})
	if err != nil {
		return nil, err
	}
	if _, err := r.Load(ctx); err != nil { // an Open that could not connect says nothing
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// copyCounts stores what clicks.db has counted.
func (m *move) copyCounts(ctx context.Context) error {
	if (m.state.Since > 0) != (m.Analytics != nil) && (m.state.Since > 0 || m.state.Counted) {
		return fmt.Errorf("copy statistics: %w", errElsewhere)
	}
	if !m.Statistics || m.state.Counted {
		return nil
	}
	if _, err := os.Stat(filepath.Join(m.Data, "clicks.db")); errors.Is(err, os.ErrNotExist) {
		return nil // never clicked
	}
	if m.Analytics != nil {
		if m.state.Totals+m.state.Rollups > 0 {
			return fmt.Errorf("copy statistics: %w", errElsewhere)
		}
		if err := (&exporter{m}).exportCounts(ctx); err != nil {
			return fmt.Errorf("copy statistics: %w", err)
		}
		return nil
	}
	r, err := m.rollups(ctx) // has the tables made
	if err == nil {
		err = r.Close()
	}
	if err == nil {
		err = m.takeCounts(ctx)
	}
	if err != nil {
		return fmt.Errorf("copy statistics: %w", err)
	}
	c, err := moveout.OpenCounts(ctx, m.countsCopy())
	if err == nil {
		err = errors.Join(m.storeCounts(ctx, c), c.Close())
	}
	if err != nil {
		return fmt.Errorf("copy statistics: %w", err)
	}
	return nil
}

// takeCounts copies clicks.db beside its server, unless some of a copy is stored already.
func (m *move) takeCounts(ctx context.Context) error {
	_, err := os.Stat(m.countsCopy())
	if err == nil && m.state.Totals+m.state.Rollups > 0 {
		return nil
	}
	m.state.Totals, m.state.Rollups = 0, 0
	if err := m.target.Counts().Drop(ctx, &m.state); err != nil {
		return err
	}
	return copyDatabase(ctx, m)
}

// copyDatabase copies clicks.db.
func copyDatabase(ctx context.Context, m *move) error {
	half := m.countsCopy() + ".new"
	for _, name := range []string{half, m.countsCopy()} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	s, err := snapshot.Take(ctx, filepath.Join(m.Data, "clicks.db"))
	if err != nil {
		return err
	}
	err = s.Copy(ctx, half, func(done, total int64) { m.Progress("copying statistics", done, total) })
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if err := snapshot.Seal(ctx, half, func(*sqlitedb.Tx) error { return nil }); err != nil {
		return err
	}
	return os.Rename(half, m.countsCopy())
}

func (m *move) storeCounts(ctx context.Context, c *moveout.Counts) error {
	for {
		rows, err := totals(c, m.state.Totals)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		m.state.Totals = rows[len(rows)-1].N
		if err := m.target.Counts().PutTotals(ctx, rows, &m.state); err != nil {
			return err
		}
		m.Progress("totals", m.state.Totals, 0)
	}
	for stored := int64(0); ; {
		rows, err := rollups(c, m.state.Rollups)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		m.state.Rollups = rows[len(rows)-1].ID
		if err := m.target.Counts().PutRollups(ctx, rows, &m.state); err != nil {
			return err
		}
		stored += int64(len(rows))
		m.Progress("roll-ups", stored, 0)
	}
	summed, err := c.Requests()
	if err != nil {
		return err
	}
	m.state.Counted, m.state.Summed = true, summed
	at := c.State.Position
	return m.target.Counts().PutWriter(ctx, movein.Position{Generation: c.State.Generation, Segment: at.Segment, Offset: at.Offset}, &m.state)
}

// totals are a page of totals as the database has them.
func totals(c *moveout.Counts, after int64) ([]movein.Total, error) {
	rows, err := c.Totals(after, pageRows)
	all := make([]movein.Total, len(rows))
	for i, r := range rows {
		all[i] = movein.Total(r)
	}
	return all, err
}

func rollups(c *moveout.Counts, after int64) ([]movein.Rollup, error) {
	rows, err := c.Rollups(after, pageRows)
	all := make([]movein.Rollup, len(rows))
	for i, r := range rows {
		all[i] = movein.Rollup(r)
	}
	return all, err
}

// compareCounts compares the copy with what is stored.
func (m *move) compareCounts(ctx context.Context) (there coldcopy.Digest, err error) {
	if !m.state.Counted || m.state.Since > 0 { // compared day by day
		return there, nil
	}
	c, err := moveout.OpenCounts(ctx, m.countsCopy())
	if err != nil {
		return there, fmt.Errorf("compare statistics: %w", err)
	}
	here, err := digestOf(c)
	if err == nil {
		there, err = m.target.Counts().Digest(ctx, func(n int64) { m.Progress("comparing statistics", n, here.Rows) })
	}
	if err = errors.Join(err, c.Close()); err == nil && here != there {
		err = fmt.Errorf("%d rows in the folder and %d in the database, or others: %w", here.Rows, there.Rows, coldcopy.ErrDiffers)
	}
	if err != nil {
		return there, fmt.Errorf("compare statistics: %w", err)
	}
	return there, nil
}

func digestOf(c *moveout.Counts) (sum coldcopy.Digest, err error) {
	for after := int64(0); ; {
		rows, err := totals(c, after)
		if err != nil {
			return sum, err
		}
		if len(rows) == 0 {
			break
		}
		sum.Add(movein.DigestOf(rows, nil))
		after = rows[len(rows)-1].N
	}
	for after := int64(0); ; {
		rows, err := rollups(c, after)
		if err != nil || len(rows) == 0 {
			return sum, err
		}
		sum.Add(movein.DigestOf(nil, rows))
		after = rows[len(rows)-1].ID
	}
}
