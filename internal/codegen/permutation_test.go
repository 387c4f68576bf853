package codegen_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/testkit"
)

var testKey = [32]byte{1, 2, 3, 31: 255}

// TestPermutationIsABijectionOfSmallSpaces tries every space up to 300 and some
// around the powers of two, where the halves change their size.
func TestPermutationIsABijectionOfSmallSpaces(t *testing.T) {
	testkit.Unraced(t)
	sizes := []uint64{1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537}
	for n := uint64(1); n <= 300; n++ {
		sizes = append(sizes, n)
	}
	p := codegen.NewPermutation(testKey)
	for _, n := range sizes {
		seen := make([]bool, n)
		for id := range n {
			v := p.ApplyIn(n, id)
			if v >= n || seen[v] {
				t.Fatalf("size %d: %d went to %d, outside or taken", n, id, v)
			}
			seen[v] = true
			if back := p.InvertIn(n, v); back != id {
				t.Fatalf("size %d: %d went to %d and back to %d", n, id, v, back)
			}
		}
	}
}

// TestPermutationIsABijectionOfFourDigits tries all 14.8 million ids, the space
// halved among two goroutines.
func TestPermutationIsABijectionOfFourDigits(t *testing.T) {
	testkit.Faults(t)
	p, n := codegen.NewPermutation(testKey), codegen.Space(4)
	var halves [2][]bool
	var wg sync.WaitGroup
	for i := range halves {
		seen := make([]bool, n)
		halves[i] = seen
		wg.Go(func() {
			for id := uint64(i); id < n; id += 2 {
				v := p.Apply(4, id)
				if v >= n || seen[v] {
					t.Errorf("%d went to %d, outside or taken", id, v)
					return
				}
				seen[v] = true
			}
		})
	}
	wg.Wait()
	for v := range n {
		if halves[0][v] == halves[1][v] {
			t.Fatalf("%d was reached twice or never", v)
		}
	}
}

func TestPermutationAndInverseUndoEachOther(t *testing.T) {
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		rapid.Check(t, func(t *rapid.T) {
			var key [32]byte
			copy(key[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
			p := codegen.NewPermutation(key)
			v := rapid.Uint64Max(codegen.Space(length)-1).Draw(t, "v")
			if w := p.Apply(length, v); w >= codegen.Space(length) || p.Invert(length, w) != v {
				t.Fatalf("%d went to %d and back to %d", v, w, p.Invert(length, w))
			}
			if w := p.Invert(length, v); w >= codegen.Space(length) || p.Apply(length, w) != v {
				t.Fatalf("%d came from %d, which goes to %d", v, w, p.Apply(length, w))
			}
			code := p.Code(length, v)
			if id, ok := p.ID(code); !ok || id != v || len(code) != length {
				t.Fatalf("id %d has code %q, whose id is %d, %v", v, code, id, ok)
			}
		})
	}
}

func TestNoIDHasACodeOfAnotherShape(t *testing.T) {
	p := codegen.NewPermutation(testKey)
	for _, code := range []link.Code{"", "abc", "abcdefghijk", "my-alias", "under_score", "ünïcode"} {
		if id, ok := p.ID(code); ok {
			t.Errorf("%q is said to be the code of %d", code, id)
		}
	}
}

// TestPermutationNeverChanges pins codes: a change of key schedule, rounds, round
// function or alphabet would lose every link that lives.
func TestPermutationNeverChanges(t *testing.T) {
	p := codegen.NewPermutation(testKey)
	for length, want := range pinned {
		for id, code := range want {
			if got := p.Code(length, uint64(id)); got != code {
				t.Errorf("code of %d in %d digits is %q, was %q", id, length, got, code)
			}
		}
	}
}

// pinned are the codes of the ids from 0 on, by length.
var pinned = map[int][]link.Code{
	4:  {"7f2n", "jXcl", "0tpz", "lGWt"},
	7:  {"iKjjhWN", "KptzuCH", "zVM3Wjz", "e8yBTdn"},
	10: {"PXJGeZfQ14", "s3ScR0pPoD", "tcLkazeQiK", "kCDovpyxGk"},
}

func TestKeyAndLengthMatter(t *testing.T) {
	a, same := codegen.NewPermutation(testKey), 0
	for i := range 256 { // each bit of the key
		key := testKey
		key[i/8] ^= 1 << (i % 8)
		b := codegen.NewPermutation(key)
		for id := range uint64(50) {
			if a.Apply(7, id) == b.Apply(7, id) {
				same++
			}
		}
	}
	for id := range codegen.Space(4) / 100 {
		if a.Apply(4, id) == a.Apply(5, id) {
			same++
		}
	}
	if same > 1 { // 12,800 pairs in 3.5e12 values, 147,763 in 9e8
		t.Errorf("%d ids have the same value under another key or length", same)
	}
}

func TestPermutationPanicsOutOfBounds(t *testing.T) {
	p := codegen.NewPermutation(testKey)
	for name, f := range map[string]func(){
		"length 3":      func() { p.Apply(3, 0) },
		"length 11":     func() { p.Invert(11, 0) },
		"id of 62^4":    func() { p.Apply(4, codegen.Space(4)) },
		"value of 62^4": func() { p.Invert(4, codegen.Space(4)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// FuzzPermutation takes any key and id: both directions undo each other.
func FuzzPermutation(f *testing.F) {
	f.Add(uint64(0), uint64(0), uint8(0))
	f.Add(uint64(1), uint64(3_521_614_606_207), uint8(3))
	f.Add(^uint64(0), ^uint64(0), uint8(6))
	f.Fuzz(func(t *testing.T, seed, id uint64, pick uint8) {
		var key [32]byte
		r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
		if _, err := r.Read(key[:]); err != nil {
			t.Fatal(err)
		}
		p := codegen.NewPermutation(key)
		length := codegen.MinLength + int(pick)%(codegen.MaxLength-codegen.MinLength+1)
		id %= codegen.Space(length)
		if back, ok := p.ID(p.Code(length, id)); !ok || back != id {
			t.Fatalf("length %d: %d came back as %d, %v", length, id, back, ok)
		}
		if w := p.Invert(length, id); p.Apply(length, w) != id {
			t.Fatalf("length %d: %d came from %d, which goes elsewhere", length, id, w)
		}
	})
}

func BenchmarkApply(b *testing.B) {
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
