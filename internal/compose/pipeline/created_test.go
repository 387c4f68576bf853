package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/link"
)

// TestAFailureEndsWithTheLease: a server that has lost the job to another one does not report its
// last failure for ever.
func TestAFailureEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, refused := &createdSender{}, errors.New("refused")
		lease, lose := context.WithCancel(t.Context())
		defer lose()
		s.failed(lease, time.Now(), refused)
		time.Sleep(time.Minute)
		s.failed(lease, time.Now(), refused)
		if got := s.unsent(time.Now()); got != time.Minute || !errors.Is(s.healthy(), refused) {
			t.Errorf("unsent for %v, %v; want a minute", got, s.healthy())
		}
		lose()
		synctest.Wait()
		if got := s.unsent(time.Now()); got != 0 || s.healthy() != nil {
			t.Errorf("after the lease: unsent for %v, %v", got, s.healthy())
		}
	})
}

func TestWhichEntriesAreCreates(t *testing.T) {
	for _, c := range []struct {
		kind    link.EventKind
		version link.Version
		want    bool
	}{
		{link.WasCreated, 1, true},
		{"", 1, true}, // of the first release with a change log
		{"", 2, false},
		{link.WasUpdated, 2, false},
		{link.WasDeleted, 3, false},
		{"expired", 0, false},
	} {
		e := link.Event{Kind: c.kind, Change: link.Change{Version: c.version}}
		if got := creates(&e); got != c.want {
			t.Errorf("kind %q, version %d: %v, want %v", c.kind, c.version, got, c.want)
		}
	}
}
