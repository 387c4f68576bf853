package abuse

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// Panel asks several signals about one URL. It is safe for many goroutines.
type Panel struct {
	members []member // set once
}

// member is a signal and the count of its errors.
type member struct {
	signal Signal
	failed prometheus.Counter
}

// NewPanel returns a panel of these signals, which are asked in this order. Two signals
// may bear one name; then they share a counter. reg may be nil.
func NewPanel(reg prometheus.Registerer, signals ...Signal) *Panel {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "curt", Name: "signal_failures_total",
		Help: "Evaluations of a signal that failed; those links were scored without it.",
	}, []string{"signal"})
	if reg != nil {
		reg.MustRegister(failures)
	}
	p := &Panel{}
	for _, s := range signals {
		p.members = append(p.members, member{s, failures.WithLabelValues(string(s.Name()))})
	}
	return p
}

// Inspect returns what the signals find, without points: Decide fills them in. There is no
// allocation when they find nothing. A signal that fails finds nothing and is counted:
// that nobody knows is no reason to stop a link, and none to keep quiet. The evidence is
// fit to be shown and stored: UTF-8, one line, at most MaxEvidence bytes.
//
// Inspect is asked once for each URL of a link that is made or changed, because some
// signals count what they are asked. The Facts belong to the caller again when it
// returns.
func (p *Panel) Inspect(ctx context.Context, now time.Time, f *Facts) []Finding {
	var all []Finding
	for i := range p.members {
		found, err := p.members[i].signal.Inspect(ctx, now, f)
		if err != nil {
			p.members[i].failed.Inc()
			continue
		}
		for _, finding := range found {
			finding.Evidence = Clean(finding.Evidence)
			all = append(all, finding)
		}
	}
	return all
}

// Clean makes evidence out of text that strangers chose parts of. What cannot be seen,
// or turns the direction of what follows, becomes U+FFFD.
func Clean(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unseen) {
		s = strings.Map(func(r rune) rune {
			if unseen(r) {
				return utf8.RuneError
			}
			return r
		}, s)
	}
	if len(s) <= MaxEvidence {
		return s
	}
	const more = "…"
	end := MaxEvidence - len(more)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}

func unseen(r rune) bool { return !unicode.IsPrint(r) }

// Found returns a single finding.
func Found(name Name, evidence string) []Finding {
	return []Finding{{Signal: name, Evidence: evidence}}
}
