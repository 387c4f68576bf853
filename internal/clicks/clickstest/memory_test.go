package clickstest_test

import (
	"testing"

	"curt/internal/clicks"
	"curt/internal/clicks/clickstest"
)

func TestMemoryConforms(t *testing.T) {
	clickstest.Run(t, clickstest.Harness{
		Open:  func(*testing.T) clicks.RollupStore { return new(clickstest.Memory) },
		Again: func(_ *testing.T, s clicks.RollupStore) clicks.RollupStore { return s },
	})
}
