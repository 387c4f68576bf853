package searchtest_test

import (
	"testing"

	"curt/internal/search"
	"curt/internal/search/searchtest"
)

func TestMemory(t *testing.T) {
	for name, reads := range map[string]int{"whole pages": 0, "short pages": 50} {
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, searchtest.Harness{Open: func(testing.TB) search.Index {
				m := searchtest.NewMemory()
				m.Reads = reads
				return m
			}})
		})
	}
}
