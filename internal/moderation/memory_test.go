package moderation_test

import (
	"io"
	"testing"

	"curt/internal/moderation/moderationtest"
)

func memory() moderationtest.Harness {
	return moderationtest.Harness{Open: func(testing.TB) (moderationtest.Store, io.Closer) {
		m := moderationtest.NewMemory()
		return m, m
	}}
}

func TestMemoryJournal(t *testing.T) { moderationtest.Run(t, memory()) }

func TestMemoryLists(t *testing.T) {
	moderationtest.RunLists(t, moderationtest.ListsHarness{Open: func(testing.TB) moderationtest.Listing { return moderationtest.NewMemory() }})
}
