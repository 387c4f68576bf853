package bans_test

import (
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/bans"
	"curt/internal/moderation/moderationtest"
)

func TestAFollowerKnowsTheBansThatStand(t *testing.T) {
	t.Parallel()
	journal, at := moderationtest.NewMemory(), time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	host := moderation.Entity{Kind: moderation.KindHost, Name: "evil.example"}
	l := link.Link{Key: link.Key{Code: "code001"}, Destination: "https://evil.example/x", Workspace: "acme"}
	write := func(of moderation.Entity, a moderation.Action, s link.Safety) {
		t.Helper()
		e := moderation.Entry{At: at, Entity: of, Action: a, Safety: s, Actor: "admin", Reason: moderation.Commit("test", [16]byte{1})}
		if _, err := journal.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	write(moderation.Entity{Kind: moderation.KindWorkspace, Name: "acme"}, moderation.ActionBan, link.Warn)
	write(host, moderation.ActionBan, link.Blocked)
	write(host, moderation.ActionLift, link.Clean)
	f := bans.NewFollower(journal)
	steps := []struct {
		do   func()
		want link.Safety
	}{
		{func() {}, link.Warn},
		{func() { write(host, moderation.ActionBan, link.Blocked) }, link.Blocked},
		{func() {
			write(host, moderation.ActionLift, link.Clean)
			for range 600 { // more than a page
				write(moderation.Entity{Kind: moderation.KindHost, Name: "other.example"}, moderation.ActionBan, link.Blocked)
			}
			write(moderation.Entity{Kind: moderation.KindWorkspace, Name: "acme"}, moderation.ActionLift, link.Clean)
		}, link.Clean},
	}
	for i, s := range steps {
		s.do()
		if err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := f.Set.Safety(&l); got != s.want {
			t.Errorf("step %d: %v, want %v", i, got, s.want)
		}
	}
}
