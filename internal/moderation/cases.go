package moderation

import (
	"context"
	"errors"
	"time"

	"curt/internal/link"
)

// Case is one link under review: opened by what the policy decided, by reports or by
// an appeal, and closed by the next decision of a moderator. The case of a Destination has no link. A link has one open case
// at most; what is reported meanwhile joins it.
type Case struct {
	ID   link.ID // begins with the time of its opening
	Link Ref
	Facts

	Sources Sources
	Score   int       // the highest of the policy's decisions in it, 0 to 100
	Opened  time.Time // UTC, whole milliseconds, as all times here
	Due     time.Time // by then a moderator should have decided
	Reports Tally

	Closed    time.Time   // zero = open
	DecidedBy string      // the actor of the entry that closed it
	Decided   link.Safety // what that entry decided; 0 while open
	Sequence  uint64      // of that entry
}

// Ref names a link. It is the ID that counts: an entry of the journal is written before
// its link is stored, so that more than one link may have been about to have a key.
type Ref struct {
	Key link.Key
	ID  link.ID
}

// IsDestination reports whether r names a Destination.
func (r Ref) IsDestination() bool { return r.Key == link.Key{} }

// RefOf returns the name of a link.
func RefOf(l *link.Link) Ref { return Ref{l.Key, l.ID} }

// IsOpen reports whether the case waits for a moderator.
func (c *Case) IsOpen() bool { return c.Closed.IsZero() }

// Facts are what the queue is filtered by, as they were when the case was opened. The
// journal is written before the link, so they may have to wait for it: until then they
// are zero, and the case is in no list.
type Facts struct {
	Workspace link.WorkspaceID
	Host      string // of the destination, canonical
}

// Tally says how often a link was reported.
type Tally struct {
	Count       int
	By          [Other + 1]int // by Category
	First, Last time.Time      // zero = never
}

// Sources is a set of what brought a case into the queue.
type Sources uint8

// What brings a case into the queue.
const (
	FromPolicy Sources = 1 << iota // the policy decided
	FromReport                     // somebody reported it
	FromAppeal                     // somebody appeals; in an open case that has no answer yet
	FromBlock                      // a create was refused: the subject is a Destination
)

// Category is what a reporter says is wrong with a link.
type Category uint8

// The categories of reports. Their numbers are stored.
const (
	Phishing Category = iota
	Malware
	Spam
	Illegal
	Other
)

// Categories lists all categories, in the order in which they are offered.
func Categories() []Category { return []Category{Phishing, Malware, Spam, Illegal, Other} }

// String returns the name of the category in the API and in the form.
func (c Category) String() string {
	switch c {
	case Phishing:
		return "phishing"
	case Malware:
		return "malware"
	case Spam:
		return "spam"
	case Illegal:
		return "illegal"
	case Other:
	}
	return "other"
}

// ParseCategory reads the name of a category.
func ParseCategory(name string) (Category, bool) {
	for _, c := range Categories() {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

// Opening is what opens the case of a link, or joins the one that is open: then the ID
// and the Due are of no use, and the graver score stays. What an entry of the journal says
// joins the case that a later entry has closed already: Close need not wait for its turn.
type Opening struct {
	ID       link.ID
	Link     Ref
	Facts    Facts // zero = the link is not there yet
	Source   Sources
	Sequence uint64 // of the entry of the journal; 0 = it is from elsewhere
	Score    int
	At, Due  time.Time
}

// Closing is a moderator's decision about a link. It closes the open case and answers the
// open appeal. A case that was opened later stays, and so does one with a later appeal. A
// Closing that was taken once does nothing. Of a destination it is the decision as well, unless a
// later one was taken; one for all workspaces is that of every destination with the Digest, whose open
// cases it closes, and whose appeals it answers without words.
type Closing struct {
	Link     Ref
	Sequence uint64 // of the entry of the journal
	At       time.Time
	By       string
	Safety   link.Safety
	Answer   string // to whoever appealed; "" = the decision alone
	Everyone bool   // of a destination: for all workspaces
	Digest   Hash   // of a destination, if Everyone
}

// Report is one report of a link. Whoever sent it may have left words and an address:
// both are kept apart from the case and from the journal, so that they can be erased,
// and are never logged.
type Report struct {
	Opening

	Category Category
	Text     string // at most MaxReportText bytes
	Contact  string // at most MaxContact bytes; "" = none
	Network  uint64 // keyed digest of the reporter's network, for the day of At only; 0 = unknown
}

// Note is what is kept of a report.
type Note struct {
	At       time.Time
	Category Category
	Text     string
	Contact  string
	Erased   bool // text and contact are gone
}

// Appeal is what the owner of a link says against a decision. It is answered once.
type Appeal struct {
	ID     link.ID
	Link   Ref
	Token  Hash // SHA-256 of what its maker was given to read the answer with
	At     time.Time
	By     string // id of the key of who made it; "" = nobody's
	Reason string // at most MaxReportText bytes
	Erased bool   // reason and answer are gone

	// Against is the sequence of the decision that stood when it was made.
	Against uint64

	Answered   time.Time // zero = not yet
	AnsweredBy string
	Safety     link.Safety // what was decided; 0 while it is open
	Answer     string      // at most MaxReason bytes
	Sequence   uint64      // of the entry of the journal that answered
}

// IsOpen reports whether the appeal waits for its answer.
func (a *Appeal) IsOpen() bool { return a.Answered.IsZero() }

// Bounds of what strangers write, in bytes, and of what is kept of it.
const (
	MaxReportText = 1000
	MaxContact    = 254 // the longest address of RFC 5321
	MaxNotes      = 20  // of a case: the newest
	MaxNetworks   = 1000
)

// The errors of Cases and Appeals, tested with errors.Is. Beside them come
// link.ErrUnavailable, when the store cannot be asked, and link.ErrConflict, where a
// method names it. A write that returned
// link.ErrUncertain, or any other error, may have happened.
var (
	// ErrNoCase: the link never was under review.
	ErrNoCase = errors.New("this link is not under review")
	// ErrNoAppeal: there is no such appeal.
	ErrNoAppeal = errors.New("no such appeal")
	// ErrAppealed: an appeal of the link waits for its answer.
	ErrAppealed = errors.New("an appeal is already open")
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

	// Pending returns up to n cases without Facts whose ids follow one, in the order of ids, which is that of
	// opening. Describe gives one its Facts; the zero Facts drop it, because its link was never made.
	Pending(ctx context.Context, after link.ID, n int) ([]Case, error)
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
