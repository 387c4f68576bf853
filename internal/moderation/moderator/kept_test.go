package moderator_test

import (
	"context"
	"crypto/rand"
	"testing"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
)

// counting counts what is kept.
type counting struct {
	moderation.ProgressStore

	kept int
}

func (c *counting) StoreProgress(ctx context.Context, p moderation.Progress) error {
	c.kept++
	return c.ProgressStore.StoreProgress(ctx, p)
}

// TestProgressIsKeptOnce: who looks once a second and finds nothing new writes nothing.
func TestProgressIsKeptOnce(t *testing.T) {
	journal := moderationtest.NewMemory()
	progress := &counting{ProgressStore: journal}
	m, err := moderator.Open(t.Context(), moderator.Config{
		Journal: journal, Progress: progress, Links: linktest.NewMemory(), Random: rand.Reader, Now: noon, Announce: func(link.Change) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{Moderator: m, journal: journal}
	for bans := range 3 {
		d.ban(t, moderation.KindHost, []string{"a.example", "b.example", "c.example"}[bans])
		d.run(t)
		kept := progress.kept
		if kept == 0 {
			t.Fatal("nothing is kept")
		}
		for range 10 {
			d.run(t)
		}
		if progress.kept != kept {
			t.Errorf("after ban %d the same was kept %d times more", bans+1, progress.kept-kept)
		}
	}
}
