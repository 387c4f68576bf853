package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/settings"
)

// Level says how bad a finding is.
type Level int

// The levels, in the order of badness.
const (
	OK      Level = iota
	Warning       // works, and will not for long, or not as well as it could
	Failure       // something is broken, lost or open to others
)

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case OK:
		return "ok"
	case Warning:
		return "warning"
	default:
		return "failure"
	}
}

// Finding is what one check found.
type Finding struct {
	Check  string // what was looked at, as "click log"
	Level  Level
	Text   string // one line
	Advice string // what to do; "" where nothing is
}

// Options says what is examined.
type Options struct {
	Config config.Config
	Now    time.Time
	// All recounts the whole click log, compares every index with its table, and reads
	// journal and links to the end; otherwise Days days of statistics are recounted,
	// today's among them.
	All  bool
	Days int
	// Within bounds the time of reading the journal, and that of reading the links; 0 =
	// to the end.
	Within time.Duration
	// Report is called with each finding, as it is made.
	Report func(Finding)
	// Progress is called now and then by checks that take long; all is 0 where
	// nobody knows how much there is.
	Progress func(check string, done, all int64)
}

// Examine runs every check. What one finds, or fails of, does not keep the others from
// looking. It returns early, with the cause, only when ctx ends.
func Examine(ctx context.Context, o Options) error {
	e := &examination{Options: o, folder: folder{dir: o.Config.Data}}
	for _, check := range []func(context.Context){e.settings, e.openLock, e.disk, e.permissions, e.links, e.search, e.clicks, e.clock, e.addresses} {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("examine: %w", context.Cause(ctx))
		}
		check(ctx)
	}
	return nil
}

// examination is one run; what early checks learn is of use to later ones.
type examination struct {
	Options
	folder

	newest time.Time // of everything that was recorded
	what   string    // that was recorded then
}

func (e *examination) ok(check, text string, args ...any) {
	e.Report(Finding{Check: check, Level: OK, Text: fmt.Sprintf(text, args...)})
}

func (e *examination) warn(check, advice, text string, args ...any) {
	e.Report(Finding{Check: check, Level: Warning, Text: fmt.Sprintf(text, args...), Advice: advice})
}

func (e *examination) fail(check, advice, text string, args ...any) {
	e.Report(Finding{Check: check, Level: Failure, Text: fmt.Sprintf(text, args...), Advice: advice})
}

// errLate: a check has taken as long as it may.
var errLate = errors.New("time limit reached")

// bounded returns ctx with an end for one check, whose cause is errLate.
func (e *examination) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.All || e.Within == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, e.Within, errLate)
}

// toTheEnd is the advice of a check that was cut short.
const toTheEnd = "use curt doctor --within 0 to read to the end, or a larger --within to read more"

// recorded notes a time that something bears.
func (e *examination) recorded(at time.Time, what string) {
	if at.After(e.newest) {
		e.newest, e.what = at, what
	}
}

// settings looks at every setting, and uses each file, secret and address once.
func (e *examination) settings(ctx context.Context) {
	for _, c := range settings.Check(ctx, e.Config) {
		switch {
		case c.Err != nil:
			e.fail(c.About, cmp.Or(c.Advice, "correct the setting"), "%v", c.Err)
		case c.Advice != "":
			e.warn(c.About, c.Advice, "%s", c.What)
		default:
			e.ok(c.About, "%s", c.What)
		}
	}
}

// openLock finds out whether there is a folder to examine, and whether a server has it.
func (e *examination) openLock(context.Context) {
	info, err := os.Stat(e.Config.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.fail("data folder", "set --data or CURT_DATA, or start the server once", "missing at %s", e.Config.Data)
		return
	case err != nil || !info.IsDir():
		return // settings has said so
	}
	e.there = true
	if e.held, err = datafolder.Held(e.Config.Data); err != nil {
		e.fail("data folder", "give the user of curt read and write access to the folder", "cannot check its lock: %v", err)
		return
	}
	if e.held {
		e.ok("data folder", "a server is running on %s", e.Config.Data)
	} else {
		e.ok("data folder", "no server is running on %s", e.Config.Data)
		e.taken()
	}
}
