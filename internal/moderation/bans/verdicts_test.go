package bans_test

import (
	"testing"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/bans"
)

func TestVerdictsAreTheNewestOfBothScopes(t *testing.T) {
	const url = "https://evil.example/"
	verdict := func(sequence uint64, w link.WorkspaceID, s link.Safety) moderation.Entry {
		return moderation.Entry{Sequence: sequence, Entity: moderation.OfDestination(w, moderation.DigestOf(url)), Action: moderation.ActionDecide, Safety: s}
	}
	v := bans.NewVerdicts()
	expect := func(w link.WorkspaceID, url string, want link.Safety) {
		t.Helper()
		if got, decided := v.Of(w, url); got.Safety != want || decided != (want != 0) {
			t.Errorf("%s %s: %v %v, want %v", w, url, got.Safety, decided, want)
		}
	}
	expect("acme", url, 0)
	v.Put(verdict(2, "acme", link.Blocked))
	v.Put(verdict(1, "acme", link.Clean)) // comes late
	expect("acme", url, link.Blocked)
	expect("rival", url, 0)
	expect("acme", url+"other", 0)
	v.Put(verdict(3, "", link.Warn))
	expect("acme", url, link.Warn)
	expect("rival", url, link.Warn)
	v.Put(verdict(4, "acme", link.Clean))
	expect("acme", url, link.Clean)
	expect("rival", url, link.Warn)
	v.Put(moderation.Entry{Sequence: 9, Entity: moderation.Entity{Kind: moderation.KindHost, Name: "evil.example"}, Safety: link.Blocked})
	expect("acme", url, link.Clean)
}

// Those who recheck links learn of a refusal of what was allowed, in either scope, and of nothing else.
func TestRevokedVerdicts(t *testing.T) {
	digest, v := moderation.DigestOf("https://evil.example/"), bans.NewVerdicts()
	var told []link.WorkspaceID
	v.OnRevoked(func(w link.WorkspaceID, of moderation.Hash) {
		if of != digest {
			t.Errorf("told of %x", of)
		}
		told = append(told, w)
	})
	for i, step := range []struct {
		w       link.WorkspaceID
		safety  link.Safety
		revoked bool
	}{{"acme", link.Blocked, false}, {"", link.Clean, false}, {"acme", link.Warn, false}, {"acme", link.Blocked, true}, {"", link.Legal, true}, {"", link.Blocked, false}} {
		before := len(told)
		v.Put(moderation.Entry{Sequence: uint64(i + 1), Entity: moderation.OfDestination(step.w, digest), Safety: step.safety})
		v.Put(moderation.Entry{Sequence: uint64(i + 1), Entity: moderation.OfDestination(step.w, digest), Safety: step.safety}) // the journal is followed too
		if got := told[before:]; len(got) > 0 != step.revoked || step.revoked && (len(got) != 1 || got[0] != step.w) {
			t.Errorf("step %d: told of %q", i, got)
		}
	}
}
