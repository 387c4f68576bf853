package codegen_test

import (
	"testing"

	"curt/internal/codegen"
	"curt/internal/link"
)

var testKey = [32]byte{1, 2, 3, 31: 255}

func BenchmarkCode(b *testing.B) {
	p := codegen.NewPermutation(testKey)
	b.ReportAllocs()
	var id uint64
	for b.Loop() {
		id++
		_ = p.Apply(7, id)
	}
}

func BenchmarkID(b *testing.B) {
	p := codegen.NewPermutation(testKey)
	b.ReportAllocs()
	code := link.Code("abcDEF7")
	for b.Loop() {
		if _, ok := p.ID(code); !ok {
			b.Fatal("no id")
		}
	}
}
