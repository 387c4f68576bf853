package link_test

import (
	"testing"
	"time"

	"curt/internal/link"
)

func TestATombstoneSaysWhyItsLinkWasNeverWritten(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)
	l := link.Link{
		ID: link.ID{1}, Key: link.Key{Code: "a"}, Destination: "https://example.com/", Workspace: "acme", Status: link.Active, Safety: link.Clean,
		Redirect: 302, Created: now, Updated: now,
	}
	for _, why := range []link.Unwritten{link.UnwrittenUnreadable, link.UnwrittenInvalid} {
		dead := l.NeverWritten(now, why)
		target := dead.Target()
		if err := dead.Validate(); err != nil || dead.Status != link.Deleted || dead.Destination != "" || dead.Unwritten() != why || target.Unwritten() != why {
			t.Errorf("%d: %+v, %v, %v: %v", why, dead, dead.Unwritten(), target.Unwritten(), err)
		}
		again := dead.Tombstone(now.Add(time.Hour))
		if again.Unwritten() != why {
			t.Errorf("%d: its tombstone says %d", why, again.Unwritten())
		}
	}
	for name, other := range map[string]link.Link{
		"a link":             l,
		"a deleted link":     l.Tombstone(now),
		"one of no redirect": {Status: link.Deleted},
		"a later reason":     {Status: link.Deleted, Redirect: 3},
		"256 + 1":            {Status: link.Deleted, Redirect: 257},
		"not deleted":        {Status: link.Disabled, Redirect: link.Redirect(link.UnwrittenInvalid)},
	} {
		if why := other.Unwritten(); why != 0 {
			t.Errorf("%s: %d, want none", name, why)
		}
	}
}
