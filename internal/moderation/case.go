package moderation

import (
	"time"

	"curt/internal/link"
)

// Case is one link under review: opened by what the policy decided, by reports or by
// an appeal, and closed by the next decision of a moderator. A link has one open case
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
// Closing that was taken once does nothing.
type Closing struct {
	Link     Ref
	Sequence uint64 // of the entry of the journal
	At       time.Time
	By       string
	Safety   link.Safety
	Answer   string // to whoever appealed; "" = the decision alone
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
