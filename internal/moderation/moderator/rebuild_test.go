package moderator_test

import (
	"errors"
	"strings"
	"testing"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
)

// Links are not let through because somebody took away what stops them.
func TestARebuildRefusesAJournalThatWasChanged(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(d *desk)
		says  string
	}{
		"a forged entry":  {func(d *desk) { d.journal.Spoil(2, func(e *moderation.Entry) { e.Safety = link.Clean }) }, "hash of entry 2"},
		"no entries":      {func(d *desk) { d.journal.Cut(0) }, "applied entries 1 to 3 are missing"},
		"an end cut off":  {func(d *desk) { d.journal.Cut(2) }, "applied entries 3 to 3 are missing"},
		"a reason erased": {func(d *desk) { d.journal.Spoil(1, func(e *moderation.Entry) { e.Reason = e.Reason.Erase() }) }, "texts of entry 1"},
	} {
		d := newDesk(t)
		var keys []link.Key
		for n := range 3 {
			keys = append(keys, d.make(t, n, to("https://evil.example/")))
			d.decide(t, keys[n], link.Blocked)
		}
		d.run(t)
		c.spoil(d)
		if err := d.Rebuild(t.Context(), false); !errors.Is(err, moderation.ErrBroken) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
		d.run(t)
		for _, k := range keys {
			d.safety(t, k, link.Blocked)
		}
		if err := d.Rebuild(t.Context(), true); err != nil {
			t.Errorf("%s, by those who know: %v", what, err)
		}
	}
	if err := newDesk(t).Rebuild(t.Context(), false); !errors.Is(err, moderation.ErrBroken) {
		t.Errorf("a journal that never had an entry: %v", err)
	}
}

// A text that was erased has an entry that says so, and that entry stays readable or has
// one of its own.
func TestVerifyWantsAnEntryForEveryErasure(t *testing.T) {
	erase := func(e *moderation.Entry) { e.Reason = e.Reason.Erase() }
	d := newDesk(t)
	for n := range 3 {
		d.decide(t, d.make(t, n, to("https://evil.example/")), link.Blocked)
	}
	for _, sequence := range []uint64{1, 4, 1} { // the second erases what the first says
		if _, err := d.Erase(t.Context(), noon(), "a-person", sequence, "names a person"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := moderation.Verify(t.Context(), d.journal, nil); err != nil {
		t.Errorf("erased by the rules: %v", err)
	}
	d.journal.Spoil(5, erase)
	if last, err := moderation.Verify(t.Context(), d.journal, nil); !errors.Is(err, moderation.ErrBroken) || last.Sequence > 4 {
		t.Errorf("an erasure that was emptied: sound up to %d, %v", last.Sequence, err)
	}
	j := moderationtest.NewMemory()
	for n := range 3 {
		if _, err := j.Append(t.Context(), moderationtest.Decision(t, n, link.Warn)); err != nil {
			t.Fatal(err)
		}
	}
	j.Spoil(2, erase)
	if last, err := moderation.Verify(t.Context(), j, nil); !errors.Is(err, moderation.ErrBroken) || last.Sequence != 1 || !strings.Contains(err.Error(), "entry 2") {
		t.Errorf("a row that was emptied: sound up to %d, %v", last.Sequence, err)
	}
}

// An erasure that does not say any more of which entry it was explains one, not two.
func TestOneErasureExplainsOneEntry(t *testing.T) {
	d := newDesk(t)
	k := d.make(t, 1)
	for _, s := range []link.Safety{link.Warn, link.Blocked} {
		d.decide(t, k, s)
	}
	for _, sequence := range []uint64{1, 3} { // the second erases what the first says
		if _, err := d.Erase(t.Context(), noon(), "a-person", sequence, "names a person"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := moderation.Verify(t.Context(), d.journal, nil); err != nil {
		t.Errorf("erased by the rules: %v", err)
	}
	d.journal.Spoil(2, func(e *moderation.Entry) { e.Reason = e.Reason.Erase() })
	if last, err := moderation.Verify(t.Context(), d.journal, nil); !errors.Is(err, moderation.ErrBroken) {
		t.Errorf("two entries are empty and one erasure is left for them: sound up to %d, %v", last.Sequence, err)
	}
}
