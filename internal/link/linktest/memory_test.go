package linktest_test

import (
	"testing"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

func memory() linktest.Harness {
	return linktest.Harness{
		Open:     func(testing.TB) link.Store { return linktest.NewMemory() },
		Features: linktest.Features{Spender: true, Deduper: true, Batcher: true, Reserver: true},
	}
}

func TestMemory(t *testing.T) { linktest.Run(t, memory()) }
