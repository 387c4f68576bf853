package linkservice_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

// broken is a store of which one link is damaged.
type broken struct {
	*linktest.Memory
	damage    link.DamagedError
	discarded []link.Key
}

func (s *broken) Get(ctx context.Context, k link.Key) (link.Link, error) {
	if k == s.damage.Key {
		return link.Link{}, &s.damage
	}
	return s.Memory.Get(ctx, k)
}

func (s *broken) Discard(_ context.Context, k link.Key, _ time.Time) (link.Link, error) {
	s.discarded = append(s.discarded, k)
	return link.Link{Key: k, Version: 8}, nil
}

// A link that cannot be read can be deleted all the same: by its owner, where that can be
// told, else by an admin; by nobody who wants a version that nobody knows.
func TestADamagedLinkCanBeDeleted(t *testing.T) {
	k := link.Key{Code: "broken"}
	owner, other := member("acme", auth.LinksWrite), member("other", auth.LinksWrite)
	for name, tt := range map[string]struct {
		who       auth.Principal
		workspace link.WorkspaceID
		match     shorten.Match
		want      error
	}{
		"its owner":           {owner, "acme", shorten.Match{}, nil},
		"an admin":            {admin(), "acme", shorten.Match{}, nil},
		"an admin, nobody's":  {admin(), "", shorten.Match{}, nil},
		"somebody else":       {other, "acme", shorten.Match{}, link.ErrNotFound},
		"somebody, nobody's":  {owner, "", shorten.Match{}, link.ErrUnavailable},
		"who names a version": {owner, "acme", shorten.Match{Only: true, Versions: []link.Version{7}}, link.ErrUnavailable},
		"who may not write":   {member("acme", auth.LinksRead), "acme", shorten.Match{}, auth.ErrForbidden},
	} {
		s := &broken{Memory: linktest.NewMemory(), damage: link.DamagedError{Key: k, Workspace: tt.workspace, Err: errors.New("a bit flipped")}}
		b := newBench(t, func(c *linkservice.Config) { c.Store = s })
		err := b.Delete(t.Context(), noon(), by(tt.who), k, tt.match)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if done := len(s.discarded) == 1 && len(*b.announced) == 1; done != (tt.want == nil) || len(s.discarded) != len(*b.announced) {
			t.Errorf("%s: discarded %v, announced %v", name, s.discarded, *b.announced)
		}
	}
}
