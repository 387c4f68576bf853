package moderation

import (
	"context"
	"errors"
	"time"

	"curt/internal/link"
)

// The errors of Cases and Appeals, tested with errors.Is. Beside them come
// link.ErrUnavailable, when the store cannot be asked, and link.ErrConflict, where a
// method names it. A write that returned
// link.ErrUncertain, or any other error, may have happened.
var (
	// ErrNoCase: the link never was under review.
	ErrNoCase = errors.New("this link is not under review")
	// ErrNoAppeal: there is no such appeal.
	ErrNoAppeal = errors.New("there is no such appeal")
	// ErrAppealed: an appeal of the link waits for its answer.
	ErrAppealed = errors.New("an appeal is open already")
	// ErrAnswered: the decision that stands is the answer to an appeal, or was made
	// with one in sight.
	ErrAnswered = errors.New("the appeal was answered")
)

// Cases is the review queue. It is safe for many goroutines; a write is durable when
// it returns nil, and is seen by every read that begins afterwards.
//
// What the journal says comes in by Follow, in the journal's order and together with the
// position in it: each entry counts once, whatever dies. Reports come in by themselves.
type Cases interface {
	// Position returns the sequence of the last entry of the journal that Follow has
	// seen; 0 = none.
	Position(ctx context.Context) (uint64, error)

	// Follow takes the steps, in order, and moves the position from after to to, all or
	// nothing. It returns the cases that were closed. link.ErrConflict when the position
	// is not after: somebody else followed.
	Follow(ctx context.Context, after, to uint64, steps []Step) (closed []Case, err error)

	// Close is a Closing that need not wait for Follow, which will find it done. It
	// returns the case that it closed, ErrNoCase when none was open.
	Close(ctx context.Context, c Closing) (Case, error)

	// Report opens a case or joins the open one, counts, and keeps the newest MaxNotes
	// texts. It returns the case, and how many networks have reported it on the day of
	// r.At, up to MaxNetworks. Digests of earlier days are dropped.
	Report(ctx context.Context, r Report) (c Case, networks int, err error)

	// Pending returns up to n cases without Facts, the oldest first. Describe gives one
	// its Facts; the zero Facts drop it, because its link was never made.
	Pending(ctx context.Context, n int) ([]Case, error)
	Describe(ctx context.Context, id link.ID, f Facts) error

	// Move gives the open case of a link, if there is one with Facts, to another workspace.
	Move(ctx context.Context, l link.ID, w link.WorkspaceID) error

	// Case returns the open case of a link, or the one that was closed last; else
	// ErrNoCase.
	Case(ctx context.Context, l link.ID) (Case, error)

	// Notes returns what is kept of the reports of a case, the newest first.
	Notes(ctx context.Context, id link.ID) ([]Note, error)

	// List returns up to p.Limit cases behind a position, and the position after the
	// last of them; the zero one at the end. A walk sees each case once that does not
	// change its place meanwhile.
	List(ctx context.Context, f CaseFilter, p CasePage) ([]Case, CasePosition, error)

	// Count returns how many cases are open, and how many of them are past their Due.
	Count(ctx context.Context, now time.Time) (open, overdue int, err error)

	// Forget erases up to n texts, of reports whose case was closed and of appeals that
	// were answered before an instant, and returns how many it were. Erase erases those of
	// one link, at once.
	Forget(ctx context.Context, before time.Time, n int) (int, error)
	Erase(ctx context.Context, l link.ID) (int, error)
}

// Step is an Opening or a Closing.
type Step struct {
	Open  *Opening
	Close *Closing
}

// Appeals are kept beside the cases: an open one is a source of its link's open case.
type Appeals interface {
	// Open stores an appeal and puts the case of its link into the queue. ErrAppealed
	// while another is open; ErrAnswered when the last one was answered and a.Against is
	// no later decision than that answer.
	Open(ctx context.Context, a Appeal, o Opening) (Case, error)

	// Of returns the newest appeal of a link, By the one of a token; else ErrNoAppeal.
	Of(ctx context.Context, l link.ID) (Appeal, error)
	By(ctx context.Context, token Hash) (Appeal, error)
}

// CaseFilter chooses cases; zero fields do not.
type CaseFilter struct {
	Closed    bool      // closed ones; else open ones
	Source    Sources   // one that the case has
	Category  *Category // one that it was reported for
	MinScore  int
	Host      string
	Workspace link.WorkspaceID
	DueBefore time.Time
	Order     CaseOrder
}

// CaseOrder is an order of cases.
type CaseOrder uint8

// The orders. Equals come in the order in which they were opened.
const (
	ByDue     CaseOrder = iota // open appeals first, then what is due first
	ByScore                    // the highest first
	ByReports                  // the most reported first
	ByNewest                   // the last opened first
)

// MaxCasePage bounds a page of cases.
const MaxCasePage = 100

// CasePage is a part of a walk.
type CasePage struct {
	After CasePosition // zero = from the beginning
	Limit int          // 1 to MaxCasePage
}

// CasePosition is a place in an order.
type CasePosition struct {
	Rank [2]int64
	ID   link.ID
}

// Position returns the place of a case in the order: positions ascend.
func (o CaseOrder) Position(c *Case) CasePosition {
	p := CasePosition{ID: c.ID}
	switch o {
	case ByDue:
		p.Rank = [2]int64{0, c.Due.UnixMilli()}
		if c.Sources&FromAppeal != 0 {
			p.Rank[0] = -1
		}
	case ByScore:
		p.Rank = [2]int64{-int64(c.Score), c.Due.UnixMilli()}
	case ByReports:
		p.Rank = [2]int64{-int64(c.Reports.Count), c.Due.UnixMilli()}
	case ByNewest:
		p.Rank = [2]int64{-c.Opened.UnixMilli(), 0}
	}
	return p
}

// Matches reports whether the filter chooses the case.
func (f *CaseFilter) Matches(c *Case) bool {
	switch {
	case c.Facts == Facts{}, c.IsOpen() == f.Closed:
		return false
	case f.Source != 0 && c.Sources&f.Source == 0, c.Score < f.MinScore:
		return false
	case f.Category != nil && c.Reports.By[*f.Category] == 0:
		return false
	case f.Host != "" && c.Host != f.Host, f.Workspace != "" && c.Workspace != f.Workspace:
		return false
	}
	return f.DueBefore.IsZero() || c.Due.Before(f.DueBefore)
}
