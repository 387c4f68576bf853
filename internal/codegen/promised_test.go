package codegen_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
)

// TestPromisedCodesAreCountedOnes: every code that was leased is promised, at once after a Refresh, and hardly any other.
func TestPromisedCodesAreCountedOnes(t *testing.T) {
	t.Parallel()
	perm, mark := codegen.NewPermutation(testKey), uint64(5000)
	p := codegen.NewPromised(codegen.PromisedConfig{
		Permutation: perm, Length: 7, Mark: func(context.Context) (uint64, error) { return mark, nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id := range uint64(5000) {
		if code := perm.Code(7, id); !p.Perhaps(code) {
			t.Fatalf("the code %s of id %d is not promised", code, id)
		}
	}
	if code := perm.Code(7, mark+1); !p.Perhaps(code) {
		t.Errorf("%s may have been leased since", code)
	}
	for _, id := range []uint64{mark + 1_000_000, 1 << 40} {
		if code := perm.Code(7, id); p.Perhaps(code) {
			t.Errorf("%s of id %d is promised", code, id)
		}
	}
	for _, code := range []string{"", "spring-sale", "abc", "abcdef12"} {
		if p.Perhaps(link.Code(code)) {
			t.Errorf("%q is promised", code)
		}
	}
}

// TestPromisedCodesOfSnowflake: a code is promised once its time is near, on every machine.
func TestPromisedCodesOfSnowflake(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"permuted": false, "plain": true} {
		now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
		cfg := codegen.SnowflakeConfig{Leases: codegentest.NewLeaser(), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
		perm := codegen.NewPermutation(testKey)
		if !plain {
			cfg.Permutation = perm
		}
		s := codegen.NewSnowflake(cfg)
		p := codegen.NewPromised(codegen.PromisedConfig{Permutation: perm, Snowflake: true, Plain: plain, Now: func() time.Time { return now }})
		for range 100 {
			code, err := s.Next(t.Context(), codegen.Need{})
			if err != nil {
				t.Fatal(err)
			}
			if !p.Perhaps(code) {
				t.Fatalf("%s: %s is not promised", name, code)
			}
			before := codegen.NewPromised(codegen.PromisedConfig{Permutation: perm, Snowflake: true, Plain: plain, Now: func() time.Time { return now.Add(-2 * time.Minute) }})
			if before.Perhaps(code) {
				t.Fatalf("%s: %s was promised two minutes before", name, code)
			}
		}
	}
}
