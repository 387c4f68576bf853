package web

import "testing"

func TestTextSpellsOutWhatCannotBeSeen(t *testing.T) {
	for s, want := range map[string]string{
		"plain": "plain",
		"Grüße, 中文, العربية 👩‍👧": "Grüße, 中文, العربية 👩‍👧",
		"<script>":                    "<script>", // escaping is html/template's
		"photo\u202Egpj.exe":          "photo[U+202E]gpj.exe",
		"a\u2066b\u2069":              "a[U+2066]b[U+2069]",
		"a\u200Bb\uFEFFc\u00ADd":      "a[U+200B]b[U+FEFF]c[U+00AD]d",
		"a\x00b\tc\nd\x7F\u0085":      "a[U+0000]b[U+0009]c[U+000A]d[U+007F][U+0085]",
		"a\u2028b\u3164":              "a[U+2028]b[U+3164]",
		"bad \xff\xfe utf-8":          "bad \uFFFD utf-8",
		"\U000E0041\U000F0000 hidden": "[U+E0041][U+F0000] hidden",
	} {
		if got := text(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
