package rolluptest_test

import (
	"testing"

	"curt/internal/clicks/rollup"
	"curt/internal/clicks/rollup/rolluptest"
)

func TestMemoryConforms(t *testing.T) {
	rolluptest.Run(t, rolluptest.Harness{
		Open:  func(*testing.T) rollup.Store { return new(rolluptest.Memory) },
		Again: func(_ *testing.T, s rollup.Store) rollup.Store { return s },
	})
}
