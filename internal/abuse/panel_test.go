package abuse_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/abuse"
	"curt/internal/abuse/abusetest"
)

// says is a signal that finds what it was told to.
type says struct {
	name  abuse.Name
	found []abuse.Finding
	err   error
}

func (s says) Name() abuse.Name { return s.name }

func (s says) Inspect(context.Context, time.Time, *abuse.Facts) ([]abuse.Finding, error) {
	return s.found, s.err
}

func TestAPanelAsksAll(t *testing.T) {
	reg := prometheus.NewRegistry()
	p := abuse.NewPanel(reg,
		says{name: abuse.Listed, found: []abuse.Finding{{Signal: abuse.Listed, Evidence: "one"}, {Signal: abuse.Allowed, Evidence: "two"}}},
		says{name: abuse.YoungDomain, found: []abuse.Finding{{Signal: abuse.YoungDomain}}, err: errors.New("no answer")},
		says{name: abuse.Country},
		says{name: abuse.LookAlike, found: []abuse.Finding{{Signal: abuse.LookAlike, Evidence: "three"}}},
	)
	var all []string
	for _, f := range p.Inspect(t.Context(), abusetest.Morning(), abusetest.Facts(t, "https://a.example/")) {
		all = append(all, string(f.Signal)+"="+f.Evidence)
	}
	if got := strings.Join(all, " "); got != "blocklist=one allowlist=two look_alike=three" {
		t.Errorf("found %s", got)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "curt_signal_failures_total" {
		t.Fatalf("%v, %v", families, err)
	}
	for _, m := range families[0].GetMetric() {
		name, n := m.GetLabel()[0].GetValue(), m.GetCounter().GetValue()
		if want := map[string]float64{"domain_age": 1}[name]; n != want {
			t.Errorf("%s failed %v times, want %v", name, n, want)
		}
	}
}

func TestEvidenceIsFitToBeShown(t *testing.T) {
	for raw, want := range map[string]string{
		"plain text: 1 < 2":                "plain text: 1 < 2",
		"ein Wort, größer":                 "ein Wort, größer",
		"a\x00b\r\nc\x1b[31m":              "a�b��c�[31m",
		"right\u202eleft\u2028line\u200b.": "right�left�line�.",
		"bytes \xff\xfe":                   "bytes ��",
		strings.Repeat("x", 300):           strings.Repeat("x", 300),
		strings.Repeat("x", 301):           strings.Repeat("x", 297) + "…",
		strings.Repeat("ä", 151):           strings.Repeat("ä", 148) + "…",
	} {
		p := abuse.NewPanel(nil, says{name: abuse.Listed, found: []abuse.Finding{{Signal: abuse.Listed, Evidence: raw}}})
		got := p.Inspect(t.Context(), abusetest.Morning(), abusetest.Facts(t, "https://a.example/"))[0].Evidence
		if got != want || len(got) > abuse.MaxEvidence || !utf8.ValidString(got) {
			t.Errorf("%.40q: %q, want %q", raw, got, want)
		}
	}
}
