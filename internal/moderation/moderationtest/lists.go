package moderationtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Listing is a store of lists beside its journal.
type Listing interface {
	moderation.Journal
	moderation.Lists
}

// ListsHarness is what a backend gives to [RunLists]; the fields are those of [Harness].
type ListsHarness struct {
	Open  func(t testing.TB) Listing
	Again func(t testing.TB, s Listing) Listing
}

// RunLists proves a store of lists: every case is a subtest on one of its own.
func RunLists(t *testing.T, h ListsHarness) {
	for name, prove := range map[string]func(*testing.T, Listing, Listing){
		"a line comes back as its entry":        listed,
		"a change that changes nothing":         listedTwice,
		"a refused change leaves nothing":       listedWrongly,
		"a hundred list at once":                listedAtOnce,
		"pages are in order of bytes":           listedInPages,
		"an erased reason is gone":              listedErased,
		"too many look-alikes are refused":      listedTooMany,
		"a canceled caller changes nothing":     listedCanceled,
		"a line is what the newest entry says":  listedAndUnlisted,
		"bans and decisions are not in a list":  listedBeside,
		"a thousand lines are one durable step": listedManyAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			s := h.Open(t)
			other := s
			if h.Again != nil {
				other = h.Again(t, s)
			}
			prove(t, s, other)
		})
	}
}

// lineOf is an entry that lists or unlists a line.
func lineOf(tb testing.TB, a moderation.Action, kind moderation.Kind, name string) moderation.Entry {
	tb.Helper()
	e := act(tb, a, kind, name)
	e.Safety = link.Clean
	return e
}

func change(tb testing.TB, s moderation.Lists, entries ...moderation.Entry) []moderation.Entry {
	tb.Helper()
	stored, err := s.Change(tb.Context(), entries...)
	if err != nil {
		tb.Fatalf("Change: %v", err)
	}
	return stored
}

// linesOf reads a list page by page.
func linesOf(tb testing.TB, s moderation.Lists, kind moderation.Kind, page int) (found []moderation.Entry) {
	tb.Helper()
	for after := ""; ; {
		lines, err := s.Lines(tb.Context(), kind, after, page)
		if err != nil {
			tb.Fatalf("Lines: %v", err)
		}
		if len(lines) == 0 {
			return found
		}
		found, after = append(found, lines...), lines[len(lines)-1].Entity.Name
	}
}

// loads compares what Load returns with the lists, read one by one.
func loads(tb testing.TB, s Listing, want int) {
	tb.Helper()
	lines, complete, err := s.Load(tb.Context())
	if err != nil {
		tb.Fatalf("Load: %v", err)
	}
	same(tb, "lines", len(lines), want)
	same(tb, "complete", complete, uint64(len(all(tb, s))))
	for _, kind := range moderation.ListKinds() {
		for _, e := range linesOf(tb, s, kind, 100) {
			same(tb, "entry of "+e.Entity.String(), lines[e.Entity], e.Sequence)
			want--
		}
	}
	same(tb, "lines that are in no list", want, 0)
}

func listed(t *testing.T, s, other Listing) {
	loads(t, s, 0)
	word := lineOf(t, moderation.ActionList, moderation.KindRefusedWord, "~münchen")
	host := lineOf(t, moderation.ActionList, moderation.KindAllowedDestination, "good.example")
	stored := change(t, s, word, host)
	for i, want := range []moderation.Entry{word, host} {
		want.Sequence, want.Hash = uint64(i+1), stored[i].Hash
		same(t, "stored", stored[i], want)
	}
	same(t, "journal", all(t, other), stored)
	same(t, "words", linesOf(t, other, moderation.KindRefusedWord, 10), stored[:1])
	same(t, "destinations", linesOf(t, other, moderation.KindAllowedDestination, 10), stored[1:])
	loads(t, other, 2)
}

func listedTwice(t *testing.T, s, other Listing) {
	word := lineOf(t, moderation.ActionList, moderation.KindRefusedWord, "word")
	first := change(t, s, word, word)
	same(t, "changed", len(first), 1)
	same(t, "changed again", len(change(t, other, word)), 0)
	same(t, "unlisted, which was not listed", len(change(t, other, lineOf(t, moderation.ActionUnlist, moderation.KindLookAlike, "word"))), 0)
	same(t, "nothing", len(change(t, other)), 0)
	same(t, "words", linesOf(t, s, moderation.KindRefusedWord, 10), first)
	same(t, "entries", len(all(t, s)), 1)
}

func listedWrongly(t *testing.T, s, _ Listing) {
	good := lineOf(t, moderation.ActionList, moderation.KindRefusedWord, "word")
	many := make([]moderation.Entry, moderation.MaxAppend+1)
	for i := range many {
		many[i] = good
	}
	for what, wrong := range map[string][]moderation.Entry{
		"a ban of a word":       {good, lineOf(t, moderation.ActionBan, moderation.KindRefusedWord, "word")},
		"a ban":                 {good, act(t, moderation.ActionBan, moderation.KindHost, "evil.example")},
		"a host that is listed": {good, lineOf(t, moderation.ActionList, moderation.KindHost, "evil.example")},
		"no name":               {good, lineOf(t, moderation.ActionList, moderation.KindLookAlike, "")},
		"a NUL":                 {good, lineOf(t, moderation.ActionList, moderation.KindLookAlike, "a\x00b")},
		"an erasure":            {good, lineOf(t, moderation.ActionErase, moderation.KindLookAlike, "name")},
		"too many":              many,
	} {
		if _, err := s.Change(t.Context(), wrong...); !errors.Is(err, moderation.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	loads(t, s, 0)
}

func listedAtOnce(t *testing.T, s, other Listing) {
	var callers sync.WaitGroup
	for i := range 100 {
		callers.Go(func() {
			by := []Listing{s, other}[i%2]
			e := lineOf(t, moderation.ActionList, moderation.KindRefusedWord, fmt.Sprintf("word-%d", i/4))
			for end := time.Now().Add(time.Minute); ; {
				_, err := by.Change(t.Context(), e)
				if err == nil {
					return
				}
				// A hundred in a row may take longer than a call on a busy machine: a moderator repeats it.
				if again := errors.Is(err, link.ErrUncertain) || errors.Is(err, link.ErrUnavailable); !again || time.Now().After(end) {
					t.Errorf("Change: %v", err)
					return
				}
			}
		})
	}
	callers.Wait()
	same(t, "entries", len(all(t, s)), 25)
	loads(t, s, 25)
}

func listedInPages(t *testing.T, s, _ Listing) {
	names := []string{"!a", "-b", "Z", "a", "a-", "b", "~a", "ä", "😀"}
	for _, i := range []int{3, 8, 0, 5, 7, 1, 6, 2, 4} {
		change(t, s, lineOf(t, moderation.ActionList, moderation.KindRefusedWord, names[i]))
	}
	for _, page := range []int{1, 2, 100} {
		var got []string
		for _, e := range linesOf(t, s, moderation.KindRefusedWord, page) {
			got = append(got, e.Entity.Name)
		}
		same(t, "names", got, names)
	}
}

func listedErased(t *testing.T, s, _ Listing) {
	stored := change(t, s, lineOf(t, moderation.ActionList, moderation.KindRefusedWord, "name"))
	by := act(t, moderation.ActionErase, moderation.KindRefusedWord, "name")
	by.Reason = Text(t, moderation.ErasureReason(stored[0].Sequence, "asked"))
	if _, err := s.Erase(t.Context(), stored[0].Sequence, by); err != nil {
		t.Fatal(err)
	}
	if got := linesOf(t, s, moderation.KindRefusedWord, 10); len(got) != 1 || got[0].Reason.Body != "" || !got[0].Reason.Erased {
		t.Errorf("%+v", got)
	}
}

func listedTooMany(t *testing.T, s, _ Listing) {
	for n := 0; n < moderation.MaxLookAlikes; n += moderation.MaxAppend {
		page := make([]moderation.Entry, moderation.MaxAppend)
		for i := range page {
			page[i] = lineOf(t, moderation.ActionList, moderation.KindLookAlike, fmt.Sprintf("name%d", n+i))
		}
		change(t, s, page...)
	}
	more := lineOf(t, moderation.ActionList, moderation.KindLookAlike, "more")
	if _, err := s.Change(t.Context(), more); !errors.Is(err, moderation.ErrListsFull) {
		t.Errorf("one more: %v", err)
	}
	same(t, "one that is there", len(change(t, s, lineOf(t, moderation.ActionList, moderation.KindLookAlike, "name7"))), 0)
	same(t, "another list", len(change(t, s, lineOf(t, moderation.ActionList, moderation.KindRefusedWord, "word"))), 1)
	same(t, "one for another", len(change(t, s, lineOf(t, moderation.ActionUnlist, moderation.KindLookAlike, "name7"), more)), 2)
	loads(t, s, moderation.MaxLookAlikes+1)
}

func listedCanceled(t *testing.T, s, _ Listing) {
	cause := errors.New("canceled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	errs := map[string]error{}
	_, errs["Change"] = s.Change(ctx, lineOf(t, moderation.ActionList, moderation.KindRefusedWord, "word"))
	_, errs["Lines"] = s.Lines(ctx, moderation.KindRefusedWord, "", 1)
	_, _, errs["Load"] = s.Load(ctx)
	for what, err := range errs {
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v", what, err)
		}
	}
	loads(t, s, 0)
}

func listedAndUnlisted(t *testing.T, s, other Listing) {
	add, remove := lineOf(t, moderation.ActionList, moderation.KindLookAlike, "acme"), lineOf(t, moderation.ActionUnlist, moderation.KindLookAlike, "acme")
	same(t, "changed", len(change(t, s, add, remove, add, remove)), 4)
	loads(t, other, 0)
	stored := change(t, other, remove, add)
	same(t, "names", linesOf(t, s, moderation.KindLookAlike, 10), stored)
	loads(t, s, 1)
}

func listedBeside(t *testing.T, s, _ Listing) {
	mustAppend(t, s, Decision(t, 1, link.Warn), act(t, moderation.ActionBan, moderation.KindDomain, "evil.example"))
	stored := change(t, s, lineOf(t, moderation.ActionList, moderation.KindAllowedDestination, "evil.example"))
	same(t, "sequence", stored[0].Sequence, uint64(3))
	bans, err := s.Bans(t.Context())
	if err != nil || len(bans) != 1 {
		t.Errorf("bans %v, %v", bans, err)
	}
	loads(t, s, 1)
}

func listedManyAtOnce(t *testing.T, s, other Listing) {
	page := make([]moderation.Entry, moderation.MaxAppend)
	for i := range page {
		page[i] = lineOf(t, moderation.ActionList, moderation.KindRefusedWord, fmt.Sprintf("word%d", i))
	}
	page[len(page)-1].Action = moderation.ActionBan
	if _, err := s.Change(t.Context(), page...); err == nil {
		t.Error("a ban of a word was stored")
	}
	loads(t, other, 0)
	page[len(page)-1].Action = moderation.ActionList
	same(t, "changed", len(change(t, s, page...)), len(page))
	loads(t, other, len(page))
}
