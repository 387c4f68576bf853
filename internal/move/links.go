package move

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/sqlite/moveout"
	"curt/internal/link"
)

// pageRows are written together, logEntries read together.
const (
	pageRows   = 1000
	logEntries = 1000
)

// newName names the writer of the folder's click log in the database.
func newName() string { return rand.Text() }

// DamagedError says that links are damaged, which no server answers either.
type DamagedError struct{ Links []error }

// Error returns one line.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%d links are damaged, such as: %v; delete them or restore a backup first (curt doctor finds all)", len(e.Links), e.Links[0])
}

// Sound returns a DamagedError where links are damaged.
func Sound(damaged []error) error {
	if len(damaged) > 0 {
		return &DamagedError{damaged}
	}
	return nil
}

// walk reads all links once.
func (m *move) walk(ctx context.Context) error {
	if m.state.Walked {
		return nil
	}
	if m.state.After == "" { // what is written from now on is in the logs
		heads, err := m.source.Heads()
		if err != nil {
			return err
		}
		m.state.Changes, m.state.Creates = heads.Changes, heads.Creates
	}
	total, done := m.source.MostLinks(), int64(0)
	for !m.state.Walked {
		links, damaged, next, err := m.source.Links(link.Cursor(m.state.After), pageRows)
		if err == nil {
			err = Sound(damaged)
		}
		if err != nil {
			return err
		}
		m.state.After, m.state.Walked = string(next), next == ""
		if err := m.links.PutLinks(ctx, links, &m.state); err != nil {
			return err
		}
		done += int64(len(links))
		m.Progress("links", done, total)
		if err := m.source.Renew(); err != nil { // so that the write-ahead log can begin anew
			return err
		}
	}
	return nil
}

// again reads all links anew: the logs of the folder had not enough.
func (m *move) again(ctx context.Context, why error) error {
	m.Note("reading all links again: %v", why)
	m.state.Walked, m.state.After, m.state.Changes, m.state.Creates = false, "", 0, 0
	if err := m.links.DropLinks(ctx, &m.state); err != nil {
		return err
	}
	return m.walk(ctx)
}

// catchUp brings the database to the folder's state of now, and returns how many rows were written.
// They are read back.
func (m *move) catchUp(ctx context.Context) (written int, err error) {
	if err := m.source.Renew(); err != nil {
		return 0, err
	}
	written, err = m.follow(ctx)
	if errors.Is(err, moveout.ErrTrimmed) {
		if err := m.again(ctx, err); err != nil {
			return 0, err
		}
		written, err = m.follow(ctx)
	}
	if err != nil {
		return written, err
	}
	n, err := m.spent(ctx)
	if err != nil {
		return written, err
	}
	rows, err := m.cold.Sync(ctx)
	return written + n + rows, err
}

// follow writes what the logs say has changed.
func (m *move) follow(ctx context.Context) (written int, err error) {
	for {
		from := moveout.Heads{Changes: m.state.Changes, Creates: m.state.Creates}
		links, damaged, to, err := m.source.Since(from, logEntries)
		if err == nil {
			err = Sound(damaged)
		}
		if err != nil || to == from {
			return written, err
		}
		// The position moves with the last of them: they may be written again.
		for chunk := range slices.Chunk(links, pageRows) {
			if err := m.put(ctx, chunk); err != nil {
				return written, err
			}
		}
		m.state.Changes, m.state.Creates = to.Changes, to.Creates
		if err := m.target.Save(ctx, &m.state); err != nil {
			return written, err
		}
		written += len(links)
		m.Progress("changes", int64(written), 0)
	}
}

// put writes links and reads them back.
func (m *move) put(ctx context.Context, links []link.Link) error {
	if err := m.links.PutLinks(ctx, links, &m.state); err != nil {
		return err
	}
	return m.links.Same(ctx, links)
}

// spent writes the links with max_clicks whose counters have changed: no log has every click.
func (m *move) spent(ctx context.Context) (written int, err error) {
	keys, err := m.links.Limited(ctx)
	if err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(keys, pageRows) {
		links, damaged, err := m.source.Get(chunk)
		if err == nil {
			err = Sound(damaged)
		}
		if err == nil {
			err = m.links.Same(ctx, links)
		}
		if errors.Is(err, coldcopy.ErrDiffers) {
			written += len(links)
			err = m.put(ctx, links)
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// copyCold copies the tables of accounts a first time.
func (m *move) copyCold(ctx context.Context) error {
	if err := m.cold.Learn(ctx); err != nil {
		return err
	}
	m.Progress("accounts", m.cold.Rows(), 0)
	if err := m.source.Renew(); err != nil {
		return err
	}
	_, err := m.cold.Sync(ctx)
	m.Progress("accounts", m.cold.Rows(), 0)
	return err
}

// compare reads both sides in whole, at one moment of the folder, while its server writes on.
func (m *move) compare(ctx context.Context) error {
	if _, err := m.catchUp(ctx); err != nil {
		return err
	}
	var here coldcopy.Digest
	var bad error
	rows, err := m.source.EachLink(ctx, func(l *link.Link) {
		d, err := coldcopy.OfLink(l)
		bad = errors.Join(bad, err)
		here.Add(d)
		if here.Rows%pageRows == 0 {
			m.Progress("comparing links of the folder", here.Rows, 0)
		}
	})
	if err = errors.Join(err, bad, Sound(rows.Damaged)); err != nil {
		return err
	}
	there, err := m.links.Digest(ctx, func(n int64) { m.Progress("comparing links of the database", n, here.Rows) })
	if err != nil {
		return err
	}
	if here != there {
		return fmt.Errorf("%d links in the folder and %d in the database, or others: %w", here.Rows, there.Rows, coldcopy.ErrDiffers)
	}
	m.Progress("comparing accounts", 0, 0)
	cold, err := m.cold.Verify(ctx)
	if err != nil {
		return err
	}
	there.Add(cold)
	counts, err := m.compareCounts(ctx)
	there.Add(counts)
	m.digest, m.result.Digest = there, there.String()
	return err
}
