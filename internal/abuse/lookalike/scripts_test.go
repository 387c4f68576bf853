package lookalike_test

import (
	"testing"

	"curt/internal/abuse/lookalike"
)

func TestScriptsThatNobodyMixes(t *testing.T) {
	for label, want := range map[string]string{
		"paypal": "", "münchen": "", "пример": "", "日本語の家": "", "tokyo東京": "", "한국go": "", "a-1": "", "שלום": "",
		"pаypal": "Cyrillic, Latin", "αpple": "Greek, Latin", "aб日": "Cyrillic, Han, Latin",
	} {
		if got := lookalike.MixtureOf(label); got != want {
			t.Errorf("%s: %q, want %q", label, got, want)
		}
	}
}
