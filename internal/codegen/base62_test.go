package codegen_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"curt/internal/codegen"
	"curt/internal/link"
)

func TestSpaceIsAPowerOf62(t *testing.T) {
	want := map[int]uint64{4: 14_776_336, 7: 3_521_614_606_208, 10: 839_299_365_868_340_224}
	for length, n := range want {
		if got := codegen.Space(length); got != n {
			t.Errorf("Space(%d) = %d, want %d", length, got, n)
		}
	}
}

func TestBase62Ends(t *testing.T) {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		last := codegen.Space(length) - 1
		if got := codegen.Encode62(length, 0); got != link.Code(strings.Repeat("0", length)) {
			t.Errorf("0 in %d digits is %q", length, got)
		}
		if got := codegen.Encode62(length, last); got != link.Code(strings.Repeat("z", length)) {
			t.Errorf("the last number in %d digits is %q", length, got)
		}
	}
}

func TestBase62RefusesOtherShapes(t *testing.T) {
	for _, s := range []string{
		"", "abc", "abcdefghijk", "abc-", "abc_", "ab c", "abc\x00", "abcé", "äöü", "abc/", "abc:", "abc@", "abc[", "abc`", "abc{",
	} {
		if v, ok := codegen.Decode62(s); ok {
			t.Errorf("%q was read as %d", s, v)
		}
	}
}

func TestBase62KeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(codegen.MinLength, codegen.MaxLength).Draw(t, "length")
		a := rapid.Uint64Max(codegen.Space(length)-1).Draw(t, "a")
		b := rapid.Uint64Max(codegen.Space(length)-1).Draw(t, "b")
		if less := codegen.Encode62(length, a) < codegen.Encode62(length, b); less != (a < b) {
			t.Fatalf("codes of %d and %d do not sort as they do", a, b)
		}
	})
}

// FuzzBase62 reads any text: what it takes, it writes back byte for byte.
func FuzzBase62(f *testing.F) {
	for _, s := range []string{"", "0000", "zzzz", "abcDEF7", "zzzzzzzzzz", "abc-def", "zzzzzzzzzzz", "\xff\xfe00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := codegen.Decode62(s)
		if !ok {
			return
		}
		if v >= codegen.Space(len(s)) {
			t.Fatalf("%q was read as %d, beyond its space", s, v)
		}
		if back := codegen.Encode62(len(s), v); string(back) != s {
			t.Fatalf("%q became %d became %q", s, v, back)
		}
	})
}
