// Package move brings the links of a data folder into PostgreSQL, or into DynamoDB with the rest in
// PostgreSQL, while the folder's server serves, with everything that belongs to them: tombstones, accounts, the journal of moderation, reviews,
// lists, jobs, limits, and the totals and roll-ups of clicks. Read Run first; links.go has the steps
// that repeat, counts.go statistics, and finish.go what follows the switch.
//
// In this order:
//
//  1. All links are read by pages, and what was written meanwhile by the logs of curt.db.
//  2. Both sides are read in whole and compared by their digests, at one moment of the folder.
//  3. The server is frozen (package handover), the last changes are written and read back, and the
//     rows are counted on both sides.
//  4. The server says durably that the links are elsewhere. Only then does the database let servers
//     begin that wait for it.
//  5. Once the folder's server has ended, the clicks that it captured since are counted from its click
//     log, as they are in any server's folder.
//
// Each step keeps in the database how far it has come, in the transaction that did it, so that a move
// that was interrupted goes on where it was. Up to step 4 nothing is decided: the database may be
// dropped.
package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldcopy"
	"curt/internal/backend/postgres/movein"
	"curt/internal/backend/sqlite/moveout"
	"curt/internal/datafolder"
	"curt/internal/handover"
)

// Config says what is moved where.
type Config struct {
	Data       string     // the folder
	To         string     // URL of the database, or of tables of DynamoDB; for Back, of where the links are
	Accounts   string     // URL of the database of accounts, where To is tables, and for Back where it is another; else ""
	Shown      string     // the same without secrets
	Statistics bool       // with the counts of clicks
	Analytics  *Analytics // where they go, or come back from; nil = the database
	Without    []string   // servers over tables that were killed, for Back
	Log        *slog.Logger

	// Progress is told how far a step has come, of a total that may be unknown, 0.
	Progress func(step string, done, total int64)
	// Note is told what people should know at once.
	Note func(format string, args ...any)
}

// Result is what a move has done.
type Result struct {
	Links  int64         // tombstones included
	Rows   int64         // of accounts and all else
	Digest string        // of links, accounts and counts, as compared on both sides
	Frozen time.Duration // for how long the folder's server refused writes before the switch
	Clicks int64         // requests that were counted from the click log after the switch, or sent to Kafka
}

// ErrServerRuns ends a move that was stopped while it waited for the folder's server to end.
var ErrServerRuns = errors.New("the links are moved, and the folder's server still runs; end it and run this again for its last clicks")

// move is one under way.
type move struct {
	Config
	result Result
	state  movein.State
	mover  *handover.Mover
	target *movein.Target   // of accounts and statistics
	links  linkTarget       // target, or tables
	tables *tableTarget     // nil = target has the links
	source *moveout.Source  // nil behind the switch
	cold   *coldcopy.Copier // as source
	lock   io.Closer        // of the folder, where it has no server
	digest coldcopy.Digest  // of what was compared
}

// Run moves the links, or goes on with a move that was interrupted, and returns when the folder has
// nothing left to move.
func Run(ctx context.Context, c Config) (_ Result, err error) {
	mark, err := handover.Moved(c.Data)
	if err != nil {
		return Result{}, err
	}
	if mark != nil && mark.Ended {
		return Result{}, datafolder.Moved(c.Data, *mark)
	}
	m := &move{Config: c}
	defer func() { err = errors.Join(err, m.close()) }()
	if m.mover, err = handover.Begin(c.Data, func() (io.Closer, bool, error) { return datafolder.TryLock(c.Data) }); err != nil {
		return Result{}, err
	}
	if err := openTarget(ctx, m); err != nil {
		return Result{}, err
	}
	if mark == nil {
		if mark, err = m.copyAndSwitch(ctx); err != nil {
			return m.result, err
		}
	}
	return m.result, m.finish(ctx, *mark)
}

// close lets go of the folder.
func (m *move) close() error {
	var errs []error
	if m.source != nil {
		errs = append(errs, m.source.Close())
	}
	if m.target != nil {
		errs = append(errs, m.target.Close())
	}
	if m.tables != nil {
		errs = append(errs, m.tables.Close())
	}
	if m.lock != nil {
		errs = append(errs, m.lock.Close())
	}
	if m.mover != nil {
		errs = append(errs, m.mover.Close())
	}
	return errors.Join(errs...)
}

// copyAndSwitch does all steps up to the switch.
func (m *move) copyAndSwitch(ctx context.Context) (*handover.Mark, error) {
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{m.walk, m.copyCold, m.copyCounts, m.compare} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return m.handOver(ctx)
}

// open opens the folder, and begins in the database or finds out how far an earlier move came.
func (m *move) open(ctx context.Context) (err error) {
	if err := datafolder.Elsewhere(m.Data); err != nil {
		return err
	}
	if err := datafolder.Whole(ctx, m.Data); err != nil {
		return err
	}
	if m.source, err = moveout.Open(ctx, filepath.Join(m.Data, "curt.db")); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%s has no links to move: %w", m.Data, err)
		}
		return err
	}
	if m.tables != nil {
		if err := m.tables.fit(ctx, coldsql.Of(m.source.CodeKey())); err != nil {
			return err
		}
	}
	if m.state, err = m.target.Begin(ctx, m.source.CodeKey(), m.tables != nil, newName(), time.Now().UTC()); err != nil {
		return err
	}
	if m.tables != nil {
		if err := m.tables.begin(ctx, m.source.CodeKey(), &m.state); err != nil {
			return err
		}
	}
	m.cold = coldcopy.New(m.source, m.target.Cold())
	return nil
}

// rounds bounds how often the rest is copied before the freeze, and attempts how often the server may
// thaw before the end.
const (
	rounds   = 20
	small    = 200 // changes that are few enough to freeze for
	attempts = 5
	lastStep = handover.Limit - time.Second
)

// handOver freezes the folder's server for the last changes, and switches.
func (m *move) handOver(ctx context.Context) (*handover.Mark, error) {
	for range attempts {
		for range rounds {
			n, err := m.catchUp(ctx)
			if err != nil {
				return nil, err
			}
			if n < small {
				break
			}
		}
		mark, err := m.tryToSwitch(ctx)
		if !errors.Is(err, handover.ErrThawed) {
			return mark, err
		}
		m.Note("the server did not wait, retrying: %v", err)
	}
	return nil, fmt.Errorf("the server was frozen %d times, and the last changes took longer each time: %w", attempts, handover.ErrThawed)
}

func (m *move) tryToSwitch(ctx context.Context) (_ *handover.Mark, err error) {
	frozen, err := m.mover.Freeze(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := m.last(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("last changes: %w", err), frozen.Release())
	}
	mark := handover.Mark{To: m.Shown, At: time.Now().UTC(), Of: m.state.Of, Links: m.result.Links, Digest: m.digest.String()}
	if err := frozen.Switch(ctx, mark); err != nil {
		return nil, errors.Join(err, frozen.Release())
	}
	m.lock = frozen.TakeLock()
	m.state.Switched = true
	if err := m.links.Save(ctx, &m.state); err != nil {
		return nil, err // a later run does it
	}
	m.result.Frozen = time.Since(began)
	return &mark, nil
}

// last writes the last changes of a frozen folder, reads them back, and counts both sides.
func (m *move) last(ctx context.Context) error {
	within, cancel := context.WithTimeoutCause(ctx, lastStep, fmt.Errorf("not done within %s: %w", lastStep, handover.ErrThawed))
	defer cancel()
	if _, err := m.catchUp(within); err != nil {
		return errors.Join(err, context.Cause(within))
	}
	if m.tables != nil {
		if err := m.tables.goOn(within); err != nil {
			return err
		}
	}
	here, err := m.source.CountLinks()
	if err != nil {
		return err
	}
	there, err := m.links.CountLinks(within)
	if err == nil && here != there {
		err = fmt.Errorf("%d links in the folder and %d in the database: %w", here, there, coldcopy.ErrDiffers)
	}
	m.result.Links, m.result.Rows = there, m.cold.Rows()
	return err
}
