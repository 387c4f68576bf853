package moderation_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
)

// What an entry may hold, at both sides of each bound.
func TestBoundsOfEntries(t *testing.T) {
	decision := moderationtest.Decision(t, 1, link.Warn)
	for name, c := range map[string]struct {
		change func(*moderation.Entry)
		good   bool
	}{
		"as it is":              {func(*moderation.Entry) {}, true},
		"no name":               {func(e *moderation.Entry) { e.Entity.Name = "" }, false},
		"name of 400":           {func(e *moderation.Entry) { ban(e, moderation.KindHost, strings.Repeat("x", 400)) }, true},
		"name of 401":           {func(e *moderation.Entry) { ban(e, moderation.KindHost, strings.Repeat("x", 401)) }, false},
		"name that is no text":  {func(e *moderation.Entry) { ban(e, moderation.KindHost, "\xff") }, false},
		"no time":               {func(e *moderation.Entry) { e.At = time.Time{} }, false},
		"microseconds":          {func(e *moderation.Entry) { e.At = e.At.Add(time.Microsecond) }, false},
		"a millisecond":         {func(e *moderation.Entry) { e.At = e.At.Add(time.Millisecond) }, true},
		"another zone":          {func(e *moderation.Entry) { e.At = e.At.In(time.FixedZone("", 3600)) }, false},
		"no safety":             {func(e *moderation.Entry) { e.Safety = link.Clean - 1 }, false},
		"clean":                 {func(e *moderation.Entry) { e.Safety = link.Clean }, true},
		"legal":                 {func(e *moderation.Entry) { e.Safety = link.Legal }, true},
		"unknown safety":        {func(e *moderation.Entry) { e.Safety = link.Legal + 1 }, false},
		"negative score":        {func(e *moderation.Entry) { e.Score = -1 }, false},
		"score of 100":          {func(e *moderation.Entry) { e.Score = 100 }, true},
		"score of 101":          {func(e *moderation.Entry) { e.Score = 101 }, false},
		"no actor":              {func(e *moderation.Entry) { e.Actor = "" }, false},
		"actor of 64":           {func(e *moderation.Entry) { e.Actor = strings.Repeat("x", link.MaxName) }, true},
		"actor of 65":           {func(e *moderation.Entry) { e.Actor = strings.Repeat("x", link.MaxName+1) }, false},
		"actor that is no text": {func(e *moderation.Entry) { e.Actor = "\xff" }, false},
		"longest reason": {func(e *moderation.Entry) {
			e.Reason = moderation.Commit(strings.Repeat("x", moderation.MaxReason), e.Reason.Salt)
		}, true},
		"longer reason": {func(e *moderation.Entry) {
			e.Reason = moderation.Commit(strings.Repeat("x", moderation.MaxReason+1), e.Reason.Salt)
		}, false},
		"longest evidence": {func(e *moderation.Entry) {
			e.Evidence = moderation.Commit(strings.Repeat("x", moderation.MaxEvidence), e.Reason.Salt)
		}, true},
		"longer evidence": {func(e *moderation.Entry) {
			e.Evidence = moderation.Commit(strings.Repeat("x", moderation.MaxEvidence+1), e.Reason.Salt)
		}, false},
		"reason that is no text": {func(e *moderation.Entry) { e.Reason = moderation.Commit("\xff", e.Reason.Salt) }, false},
		"another's commitment":   {func(e *moderation.Entry) { e.Reason.Body += "x" }, false},
		"erased":                 {func(e *moderation.Entry) { e.Reason = e.Reason.Erase() }, false},
		"an answer":              {func(e *moderation.Entry) { e.Action = moderation.ActionAnswer }, true},
		"a decision about a host": {func(e *moderation.Entry) {
			e.Entity = moderation.Entity{Kind: moderation.KindHost, Name: "evil.example"}
		}, false},
		"an answer about a host": {func(e *moderation.Entry) {
			e.Action, e.Entity = moderation.ActionAnswer, moderation.Entity{Kind: moderation.KindHost, Name: "evil.example"}
		}, false},
		"a decision without an id": {func(e *moderation.Entry) { e.Link = link.ID{} }, false},
		"an answer without an id":  {func(e *moderation.Entry) { e.Action, e.Link = moderation.ActionAnswer, link.ID{} }, false},
		"no action":                {func(e *moderation.Entry) { e.Action = "" }, false},
		"a ban of a workspace":     {func(e *moderation.Entry) { ban(e, moderation.KindWorkspace, "acme") }, true},
		"a ban of a key":           {func(e *moderation.Entry) { ban(e, moderation.KindKey, "maker") }, true},
		"a ban of a domain":        {func(e *moderation.Entry) { ban(e, moderation.KindDomain, "evil.example") }, true},
		"a ban of a network":       {func(e *moderation.Entry) { ban(e, moderation.KindNetwork, "192.0.2.0/24") }, true},
		"a ban of a link":          {func(e *moderation.Entry) { e.Action = moderation.ActionBan }, true},
		"a ban of a bad link":      {func(e *moderation.Entry) { ban(e, moderation.KindLink, "no-slash") }, false},
		"a lift":                   {func(e *moderation.Entry) { ban(e, moderation.KindHost, "x"); e.Action = moderation.ActionLift }, true},
		"an erasure":               {func(e *moderation.Entry) { ban(e, moderation.KindHost, "x"); e.Action = moderation.ActionErase }, true},
		"an unknown kind":          {func(e *moderation.Entry) { ban(e, "planet", "x") }, false},
	} {
		e := decision
		c.change(&e)
		if err := e.Validate(); (err == nil) != c.good || err != nil && !errors.Is(err, moderation.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// ban makes an entry the ban of an entity.
func ban(e *moderation.Entry, kind moderation.Kind, name string) {
	e.Action, e.Link, e.Entity = moderation.ActionBan, link.ID{}, moderation.Entity{Kind: kind, Name: name}
}

func TestBoundsOfAnAppend(t *testing.T) {
	entries := make([]moderation.Entry, moderation.MaxAppend+1)
	for i := range entries {
		entries[i] = moderationtest.Decision(t, i, link.Warn)
	}
	if err := moderation.Appendable(entries[1:]); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	if err := moderation.Appendable(entries); !errors.Is(err, moderation.ErrInvalid) {
		t.Errorf("one more: %v", err)
	}
	entries[moderation.MaxAppend].Score = 101
	if err := moderation.Appendable(entries[1:]); !errors.Is(err, moderation.ErrInvalid) {
		t.Errorf("the last is bad: %v", err)
	}
	if err := moderation.Appendable(nil); err != nil {
		t.Errorf("none: %v", err)
	}
}

// What a person decided is not lowered by policy, and by nobody else kept from being.
func TestWhatStandsOfTwoDecisions(t *testing.T) {
	for newest := link.Clean; newest <= link.Legal; newest++ {
		for person := link.Safety(0); person <= link.Legal; person++ {
			for _, actor := range []string{moderation.ActorPolicy, "somebody"} {
				want := newest
				if actor == moderation.ActorPolicy {
					want = max(newest, person)
				}
				got := moderation.Prevailing(moderation.Entry{Sequence: 2, Actor: actor, Safety: newest}, moderation.Entry{Sequence: 1, Actor: "a person", Safety: person})
				if got.Safety != want || got.Safety == newest && got.Sequence != 2 {
					t.Errorf("%s by %s after %s: %s of entry %d stands", newest, actor, person, got.Safety, got.Sequence)
				}
			}
		}
	}
}

func TestBansStandUntilTheyAreLifted(t *testing.T) {
	var entries []moderation.Entry
	add := func(action moderation.Action, name string) {
		e := moderationtest.Decision(t, 1, link.Blocked)
		ban(&e, moderation.KindHost, name)
		e.Action, e.Sequence = action, uint64(len(entries)+1)
		entries = append(entries, e)
	}
	add(moderation.ActionBan, "a")
	add(moderation.ActionBan, "b")
	add(moderation.ActionLift, "a")
	add(moderation.ActionBan, "c")
	add(moderation.ActionErase, "b") // says something of its texts, and nothing of it
	add(moderation.ActionBan, "c")
	add(moderation.ActionBan, "d")
	add(moderation.ActionLift, "d")
	add(moderation.ActionBan, "d")
	var got []uint64
	for _, e := range moderation.ActiveBans(entries) {
		got = append(got, e.Sequence)
	}
	if diff := cmp.Diff([]uint64{2, 6, 9}, got); diff != "" {
		t.Errorf("bans that stand (-want +got):\n%s", diff)
	}
}

// Progress is stored as JSON; a cursor need not be text.
func TestProgressIsReadAsItWasKept(t *testing.T) {
	want := moderation.Progress{Applied: 7, Walks: []moderation.Walk{
		{Entities: []moderation.Entity{{Kind: moderation.KindHost, Name: "evil.example"}}, After: "\xff\x00", Seen: 3, Changed: 2},
		{All: true},
	}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := moderation.Progress{Applied: 99, Walks: make([]moderation.Walk, 9)}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{`{"Applied":-1}`, `{"Walks":[{"After":7}]}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
	copied := want.Clone()
	copied.Walks[0].Entities[0].Name, copied.Walks[1].Seen = "other", 9
	if want.Walks[0].Entities[0].Name != "evil.example" || want.Walks[1].Seen != 0 {
		t.Error("a clone shares what it was made of")
	}
}

// brokenJournal cannot be read behind an entry.
type brokenJournal struct {
	moderation.Reader
	after uint64
}

func (j brokenJournal) Read(ctx context.Context, after uint64, n int) ([]moderation.Entry, error) {
	if after >= j.after {
		return nil, link.ErrUnavailable
	}
	return j.Reader.Read(ctx, after, min(n, int(j.after-after)))
}

// A journal that cannot be read is neither sound nor broken.
func TestVerifySaysWhatItCannotRead(t *testing.T) {
	for _, after := range []uint64{0, 3} {
		last, err := moderation.Verify(t.Context(), brokenJournal{journal(t, 5), after}, nil)
		if !errors.Is(err, link.ErrUnavailable) || errors.Is(err, moderation.ErrBroken) || last.Sequence != after {
			t.Errorf("unreadable behind %d: sound up to %d, %v", after, last.Sequence, err)
		}
	}
}

// An erasure speaks of another entry, never of itself.
func TestAnErasureDoesNotExplainItself(t *testing.T) {
	j := moderationtest.NewMemory()
	e := moderationtest.Decision(t, 1, link.Warn)
	e.Action = moderation.ActionErase
	e.Reason, e.Evidence = moderation.Commit("entry 1: names a person", [16]byte{1}), moderation.Commit("a name", [16]byte{2})
	if _, err := j.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if _, err := moderation.Verify(t.Context(), j, nil); err != nil {
		t.Fatal(err)
	}
	j.Spoil(1, func(e *moderation.Entry) { e.Evidence = e.Evidence.Erase() })
	if _, err := moderation.Verify(t.Context(), j, nil); !errors.Is(err, moderation.ErrBroken) {
		t.Errorf("what an erasure said itself was taken away: %v", err)
	}
}
