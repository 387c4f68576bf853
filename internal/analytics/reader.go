package analytics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/history"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// The errors of a Reader, tested with errors.Is.
var (
	// ErrRange: the range is empty, has more than MaxPoints steps, or asks for
	// minutes that are no longer kept.
	ErrRange = errors.New("invalid range")
	// ErrUnavailable: the counts cannot be read now. It is never zeros instead.
	ErrUnavailable = errors.New("statistics are unavailable")
	// ErrIncomplete is an ErrUnavailable: the only counts there are lack clicks that others had.
	ErrIncomplete = fmt.Errorf("%w: they lack clicks", ErrUnavailable)
)

// MaxPoints bounds a series: ten years of days, a month of quarter hours, two days
// of minutes.
const MaxPoints = 4000

// MinuteRetention is how far back a series by minute may begin.
const MinuteRetention = 48 * time.Hour

// Reader answers questions about one link at a time. now is the caller's present.
// All methods may be called by many goroutines at once. Errors that wrap no
// sentinel of this package are the context's.
//
// Every answer is one view: a click is in it once or not at all, whatever is
// written meanwhile. Clicks are in it 2 s after the answer at the latest in the
// embedded shape; Totals.CompleteUntil says from when on more may come.
type Reader interface {
	// Totals returns the sums of a scope.
	Totals(ctx context.Context, s Scope, now time.Time) (Totals, error)

	// Series returns one point per step of the scope, also where nothing happened.
	// The first and the last point count only what lies within the scope, so that
	// the points sum up to Totals.
	Series(ctx context.Context, s Scope, step Step, now time.Time) ([]Point, error)

	// Top returns, for each dimension in order, the n most clicked values, by
	// clicks and then by value.
	Top(ctx context.Context, s Scope, n int, now time.Time, dimensions ...clicks.Dimension) ([][]Row, error)

	// Clicks returns the clicks of each link's whole life, in order, for lists.
	Clicks(ctx context.Context, keys []link.Key) ([]uint64, error)
}

// History shows the clicks of one link or group one by one: see history.Page for the
// order and for pages that are short. Errors are the disk's or the context's.
type History interface {
	Page(ctx context.Context, q history.Query) (history.Page, error)

	// Since returns when the oldest of the clicks was taken; zero = there are none.
	Since() time.Time
}

// Scope is whose clicks are meant, and of when. The zero Key is the orphans.
//
// From and To are widened to whole quarter hours (to whole minutes in a series by
// minute): finer counts are not kept. Zero From is the link's first click, zero To
// is now.
type Scope struct {
	Key      link.Key
	From, To time.Time
	Zone     *time.Location // of hours and days; nil = UTC
}

// Totals are sums over a scope.
type Totals struct {
	rollup.Counts
	// VisitorDays sums up the different visitors of each UTC day: whoever comes on
	// two days counts twice, because nobody is recognised the day after.
	VisitorDays uint64

	// These do not depend on the scope's range.
	Clicks24h     uint64    // clicks since the minute 24 hours ago
	LastClicked   time.Time // zero = never
	LastUpdated   time.Time // when the counts were last brought up to date; zero = not yet
	CompleteUntil time.Time // every kept click before it is counted; zero = not known yet
}

// Step is the width of a series' points.
type Step uint8

// The steps. Hours and days begin as the zone's clocks show them.
const (
	Minute Step = iota + 1
	Quarter
	Hour
	Day
)

// ParseStep returns the step of its name in the API.
func ParseStep(name string) (Step, bool) {
	switch name {
	case "minute":
		return Minute, true
	case "quarter":
		return Quarter, true
	case "hour":
		return Hour, true
	case "day":
		return Day, true
	}
	return 0, false
}

// Point is one step of a series.
type Point struct {
	Start  time.Time // in the scope's zone
	Clicks uint64
	Humans uint64
	// Visitors are the different ones of the step; 0 for Minute, which does not
	// keep them. A step over midnight UTC may count a visitor twice.
	Visitors uint64
	// Uncounted means that Visitors is 0 because there are too many to count for one
	// answer; it is never so for UTC days.
	Uncounted bool
	Complete  bool // no more clicks can come
}

// Row is one value of a dimension.
type Row struct {
	Value  string
	Clicks uint64
	Humans uint64
}
