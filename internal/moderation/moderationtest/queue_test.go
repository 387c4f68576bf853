package moderationtest_test

import (
	"testing"

	"curt/internal/moderation/moderationtest"
)

func TestMemoryCases(t *testing.T) {
	moderationtest.RunCases(t, func(*testing.T) moderationtest.Queue {
		m := moderationtest.NewMemoryCases()
		return moderationtest.Queue{Cases: m, Appeals: m, Destinations: m}
	}, nil)
}
