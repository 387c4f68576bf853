package review_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
	"curt/internal/review"
)

func complaint(code string) review.Complaint {
	return review.Complaint{Link: key(code), Category: "phishing", Text: "asks for my\r\npassword", Contact: "me@example.com"}
}

func TestReportsOpenOneCase(t *testing.T) {
	o := newOffice(t)
	o.put(t, "abc")
	for n := range 30 {
		if err := o.Report(t.Context(), noon().Add(time.Duration(n)*time.Second), stranger(n), complaint("abc")); err != nil {
			t.Fatal(err)
		}
	}
	f, err := o.Show(t.Context(), admin(), key("abc"))
	if err != nil {
		t.Fatal(err)
	}
	if f.Case.Reports.Count != 30 || len(f.Notes) != moderation.MaxNotes || f.Case.Host != "evil.example" || f.Case.Workspace != "acme" ||
		f.Case.Due.Sub(f.Case.Opened) != review.DefaultDue || f.Notes[0].Text != "asks for my\r\npassword" || f.Link == nil || f.Appeal != nil {
		t.Errorf("%+v", f)
	}
	if o.safety(t, "abc") != link.Clean {
		t.Error("reports alone stopped a link")
	}
	if got := o.queue(t); len(got) != 1 {
		t.Errorf("%d cases", len(got))
	}
}

// Whoever reports cannot tell a link from none, and what is stopped is not stored again.
func TestReportsOfNothingAreAnsweredAlike(t *testing.T) {
	o := newOffice(t)
	o.put(t, "evil", func(l *link.Link) { l.Safety = link.Blocked })
	gone := o.put(t, "gone")
	if _, err := o.links.Replace(t.Context(), gone.Tombstone(noon()), link.Edit{}); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"nobody", "evil", "gone"} {
		if err := o.Report(t.Context(), noon(), stranger(1), complaint(code)); err != nil {
			t.Errorf("%s: %v", code, err)
		}
	}
	if got := o.queue(t); len(got) != 0 {
		t.Errorf("stored: %v", got)
	}
	if got := o.value(t, "curt_reports_ignored_total"); got != 3 {
		t.Errorf("%v were counted", got)
	}
}

func TestReportsAreLimitedByNetwork(t *testing.T) {
	limit := ratelimit.Per(2, time.Hour)
	o := newOffice(t, func(c *review.Config) { c.ReportLimit, c.AppealLimit = &limit, &limit })
	o.put(t, "abc", func(l *link.Link) { l.Workspace = link.WorkspaceAnonymous })
	for n, code := range []string{"nobody", "abc", "abc", "nobody"} { // a code that nobody has costs as much
		err := o.Report(t.Context(), noon(), stranger(1), complaint(code))
		if limited, ok := errors.AsType[*review.LimitedError](err); ok != (n >= 2) || ok && limited.Verdict.RetryAfter <= 0 {
			t.Errorf("report %d: %v", n, err)
		}
	}
	if err := o.Report(t.Context(), noon(), stranger(2), complaint("abc")); err != nil {
		t.Errorf("another network: %v", err)
	}
	for n := range 3 { // appeals have a limit of their own
		_, err := o.Appeal(t.Context(), noon(), stranger(1), key("nobody"), "mine")
		if _, ok := errors.AsType[*review.LimitedError](err); ok != (n >= 2) {
			t.Errorf("appeal %d: %v", n, err)
		}
	}
	if got := o.value(t, "curt_reviews_limited_total"); got != 3 {
		t.Errorf("%v were counted", got)
	}
}

func TestABannedNetworkReportsNothing(t *testing.T) {
	o := newOffice(t)
	o.put(t, "abc", func(l *link.Link) { l.Workspace, l.Safety = link.WorkspaceAnonymous, link.Warn })
	if _, err := o.moderator.Ban(t.Context(), noon(), "mod", moderation.Entity{Kind: moderation.KindNetwork, Name: "192.0.0.0/31"}, link.Blocked, "floods"); err != nil {
		t.Fatal(err)
	}
	for n, want := range []error{review.ErrBanned, review.ErrBanned, nil} {
		if err := o.Report(t.Context(), noon(), stranger(n), complaint("abc")); !errors.Is(err, want) {
			t.Errorf("report from %d: %v", n, err)
		}
		if _, err := o.Appeal(t.Context(), noon(), stranger(n), key("abc"), "mine"); !errors.Is(err, want) {
			t.Errorf("appeal from %d: %v", n, err)
		}
	}
}

func TestReportsThatNobodyCanUseAreRefused(t *testing.T) {
	o := newOffice(t)
	o.put(t, "abc")
	for field, change := range map[string][]func(*review.Complaint){
		"category": {func(c *review.Complaint) { c.Category = "" }, func(c *review.Complaint) { c.Category = "Phishing" }},
		"text": {
			func(c *review.Complaint) { c.Text = strings.Repeat("é", 501) }, func(c *review.Complaint) { c.Text = "\xff" },
			func(c *review.Complaint) { c.Text = "a\x1b[2J" }, func(c *review.Complaint) { c.Text = "a\u009bb" },
		},
		"contact": {
			func(c *review.Complaint) { c.Contact = strings.Repeat("a", 255) }, func(c *review.Complaint) { c.Contact = "a\nb" },
		},
	} {
		for i, f := range change {
			c := complaint("abc")
			f(&c)
			err := o.Report(t.Context(), noon(), stranger(1), c)
			if wrong, ok := errors.AsType[*moderation.InvalidError](err); !ok || wrong.Field != field {
				t.Errorf("%s %d: %v", field, i, err)
			}
		}
	}
	if got := o.queue(t); len(got) != 0 {
		t.Errorf("stored: %v", got)
	}
}

func TestManyNetworksMayQuarantineUntilSomebodyLooked(t *testing.T) {
	o := newOffice(t, func(c *review.Config) { c.Quarantine = 3 })
	o.put(t, "abc")
	report := func(network int, after time.Duration) {
		t.Helper()
		if err := o.Report(t.Context(), noon().Add(after), stranger(network<<8), complaint("abc")); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		report(1, 0)
	}
	for host := range 5 { // of one /24
		if err := o.Report(t.Context(), noon(), stranger(2<<8|host), complaint("abc")); err != nil {
			t.Fatal(err)
		}
	}
	report(3, 24*time.Hour) // another day
	report(4, 24*time.Hour)
	if o.safety(t, "abc") != link.Clean {
		t.Fatal("two networks a day stopped a link")
	}
	report(5, 25*time.Hour)
	if o.safety(t, "abc") != link.Quarantined || o.value(t, "curt_reports_quarantined_total") != 1 {
		t.Fatalf("three networks: %v", o.safety(t, "abc"))
	}
	o.turn(t, noon().Add(25*time.Hour))
	if c, err := o.cases.Case(t.Context(), mustGet(t, o, "abc").ID); err != nil || c.Sources != moderation.FromPolicy|moderation.FromReport {
		t.Errorf("%+v, %v", c, err)
	}
	// Once a moderator has decided, reports stop nothing any more.
	if _, err := o.Decide(t.Context(), noon().Add(26*time.Hour), admin(), []review.Ruling{{Key: key("abc"), Safety: link.Clean, Reason: "harmless"}}); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		report(10+n, 27*time.Hour)
	}
	if got := o.queue(t); o.safety(t, "abc") != link.Clean || len(got) != 1 {
		t.Errorf("after the decision: %v, %v", o.safety(t, "abc"), got)
	}
}

func mustGet(t *testing.T, o office, code string) link.Link {
	t.Helper()
	l, err := o.links.Get(t.Context(), key(code))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// noKeys has no key of any day.
type noKeys struct{}

func (noKeys) DayKey(context.Context, time.Time) (key [16]byte, err error) {
	return key, link.ErrUnavailable
}

// What strangers write is in no line of the log and in no entry of the journal, whatever
// fails.
func TestWhatStrangersWriteIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	o := newOffice(t, func(c *review.Config) {
		c.Log, c.DayKeys, c.Quarantine = slog.New(slog.NewTextHandler(&log, nil)), noKeys{}, 2
	})
	o.put(t, "abc", func(l *link.Link) { l.Workspace = link.WorkspaceAnonymous })
	for n := range 3 {
		if err := o.Report(t.Context(), noon(), stranger(n), complaint("abc")); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(log.String(), "no day key") {
		t.Errorf("nothing was logged: %s", log.String())
	}
	entries, err := o.journal.Read(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"password", "me@example", "192.0.0"} {
		if strings.Contains(log.String(), secret) || strings.Contains(fmt.Sprint(entries), secret) {
			t.Errorf("%s is in %s or %v", secret, log.String(), entries)
		}
	}
	if o.safety(t, "abc") != link.Clean {
		t.Error("networks that cannot be told apart stopped a link")
	}
}
