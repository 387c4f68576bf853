package skeleton_test

import (
	"strings"
	"testing"
	"unicode"

	"go.mau.fi/util/confusable"
	"golang.org/x/text/unicode/norm"

	"curt/internal/abuse/skeleton"
)

func TestWhatLooksAlikeHasOneSkeleton(t *testing.T) {
	for _, same := range [][]string{
		{"microsoft", "rnicrosoft", "Microsoft", "MICROSOFT", "m1crosoft", "mícrosoft", "micr0soft", "мicrosoft", "ｍicrosoft", "ⅿicrosoft", "mi\u200bcrosoft"},
		{"paypal", "paypa1", "paypaI", "pаypаl", "раураl", "pàypal", "ραypal", "𝔭𝒶ỿ𝕡𝕒ℓ", "paypa|"},
		{"wikipedia", "vvikipedia", "wikipeclia", "WIKIPEDIA"},
		{"facebook", "faceb00k", "fаcebооk", "facebооk", "ꜰᴀᴄᴇʙᴏᴏᴋ", "facebooк", "fаcеbоoκ"},
		{"login", "LOGIN", "l0gin", "1ogin", "Iogin", "log1n"},
		{"admin", "adrnin", "aclmin", "ADMIN", "аdмin"},
		{"twitter", "тwiттer", "tvvitter", "twítter"},
		{"hotmail", "нotмail", "hotmaiI"},
		{"bank", "вaпк"},
		{"", "\u0301", "\u200b\u200d"},
	} {
		for _, text := range same {
			if got, want := skeleton.Of(text), skeleton.Of(same[0]); got != want {
				t.Errorf("%q looks like %q, and %q like %q", text, got, same[0], want)
			}
		}
	}
	for _, differ := range [][2]string{{"apple", "ample"}, {"ebay", "eday"}, {"log-in", "login"}, {"日本", "日木"}, {"data", "date"}} {
		if skeleton.Of(differ[0]) == skeleton.Of(differ[1]) {
			t.Errorf("%q and %q have one shape", differ[0], differ[1])
		}
	}
}

// What Unicode calls confusable is confusable for Skeleton.
func TestSkeletonGoesBeyondUnicode(t *testing.T) {
	pairs := 0
	for r := rune(0x80); r < 0x20000; r++ {
		shape := confusable.GetReplacement(r)
		if shape == "" || !unicode.In(r, unicode.L, unicode.N) || norm.NFD.String(string(r)) != string(r) { // decomposed first
			continue
		}
		pairs++
		if a, b := skeleton.Of(string(r)), skeleton.Of(shape); a != b {
			t.Errorf("%U is %q, and what Unicode has for it, %q, is %q", r, a, shape, b)
		}
	}
	if pairs < 4000 {
		t.Errorf("the library knows only %d confusables", pairs)
	}
	for c := byte('0'); c <= 'z'; c++ { // the fast path knows what the library knows
		shape := confusable.GetReplacement(rune(c))
		if shape == "" || c == '`' {
			continue
		}
		if a, b := skeleton.Of(string(c)), skeleton.Of(shape); a != b {
			t.Errorf("%c is %q, and %q is %q", c, a, shape, b)
		}
	}
}

// What is remembered of characters is what they look like.
func TestShapesAreRemembered(t *testing.T) {
	texts := []string{"", "paypal", "раураl", "p\u0430ypal-1", "ｍicrosoft", "日本語の家", "한국go", "\U0001D4C5aypal", "x\u0301\u0327y", "\xff"}
	for r := rune(0x80); r < 0x3400; r++ {
		texts = append(texts, "a"+string(r)+"b")
	}
	for _, text := range texts {
		if anew, remembered := skeleton.ShapesOf(text); anew != remembered {
			t.Errorf("%q looks like %q, and is remembered as %q", text, anew, remembered)
		}
	}
}

func TestASkeletonOfASCIIAllocatesOnce(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { skeleton.Of("www.rnicrosoft-login") }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever a text is, case does not change the shape of ASCII, and a text looks like itself
// with marks. What it costs is in TestSlowURLsAreJudgedInMicroseconds.
func FuzzSkeleton(f *testing.F) {
	for _, text := range []string{"rnicrosoft", "раураl", "\xff\x00", "vvvvrnrncl", strings.Repeat("\u0301", 50), "ǅ", "ﬁ", "ẞß", "한글", "\U0010ffff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 8192 {
			text = text[:8192]
		}
		shape := skeleton.Of(text)
		if again := skeleton.Of(text); again != shape {
			t.Errorf("%q, then %q", shape, again)
		}
		if ascii := strings.Map(onlyASCII, text); skeleton.Of(strings.ToUpper(ascii)) != skeleton.Of(ascii) {
			t.Errorf("%q: the case of letters matters", ascii)
		}
	})
}

func onlyASCII(r rune) rune {
	if r >= 0x80 {
		return -1
	}
	return r
}
