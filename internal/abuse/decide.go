package abuse

import (
	"cmp"
	"fmt"
	"slices"

	"curt/internal/link"
)

// Policy says what findings weigh. It is data: settings make it, and nothing in it
// changes while it is in use.
type Policy struct {
	// Weights are the points of each signal, 0 to 100; 0 or missing = the signal is
	// shown to moderators and adds nothing.
	Weights map[Name]int

	// AtLeast is the safety that a finding of a signal brings whatever the score is.
	AtLeast map[Name]link.Safety

	// A score above Warn, Quarantine, Block is answered so; 100 = never.
	Warn, Quarantine, Block int
}

// DefaultPolicy is the table of the fourth article behind the design ("Deep Dive 4"):
// above 60 a link is quarantined, above 85 blocked. A look-alike alone is quarantined.
func DefaultPolicy() Policy {
	return Policy{
		Weights: map[Name]int{
			Listed: 100, LookAlike: 65, YoungDomain: 30, Credentials: 20, Velocity: 15, Country: 10,
			Address: 15, Shortener: 0, Private: 0,
		},
		AtLeast: map[Name]link.Safety{Shortener: link.Warn},
		Warn:    100, Quarantine: 60, Block: 85,
	}
}

// Validate returns why no decision can be made by p, in words for its operator.
func (p Policy) Validate() error {
	for name, points := range p.Weights {
		if points < 0 || points > 100 {
			return fmt.Errorf("weight of %s: %d, want 0 to 100", name, points)
		}
	}
	for name, safety := range p.AtLeast {
		if safety < link.Clean || safety > link.Blocked {
			return fmt.Errorf("%s: want clean, warn, quarantined or blocked", name)
		}
	}
	if p.Warn < 0 || p.Block > 100 || p.Quarantine > p.Block || p.Warn < 100 && p.Warn > p.Quarantine {
		return fmt.Errorf("thresholds %d, %d, %d: want warn ≤ quarantine ≤ block, from 0 to 100", p.Warn, p.Quarantine, p.Block)
	}
	return nil
}

// Decision is what the findings come to.
type Decision struct {
	Safety   link.Safety // Clean, Warn, Quarantined or Blocked
	Score    int         // 0 to 100
	Findings []Finding   // with their points, most first; nil when there were none
}

// Decide adds up the findings. It is a pure function: the same findings under the same
// policy come to the same decision, in whatever order they are given.
//
// Each signal counts once, however often it found something. A finding of Allowed makes
// the decision Clean with score 0: it is the operator's own word, and stands above the
// lists of others. The findings stay, so that a moderator sees what was overruled.
func Decide(p Policy, found []Finding) Decision {
	if len(found) == 0 {
		return Decision{Safety: link.Clean}
	}
	d := Decision{Safety: link.Clean, Findings: slices.Clone(found)}
	allowed, counted := false, map[Name]bool{}
	for i := range d.Findings {
		f := &d.Findings[i]
		f.Points = p.Weights[f.Signal]
		allowed = allowed || f.Signal == Allowed
		if !counted[f.Signal] {
			counted[f.Signal] = true
			d.Score = min(100, d.Score+f.Points)
			d.Safety = max(d.Safety, p.AtLeast[f.Signal])
		}
	}
	slices.SortFunc(d.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(a.Signal, b.Signal), cmp.Compare(a.Evidence, b.Evidence))
	})
	if allowed {
		d.Safety, d.Score = link.Clean, 0
		return d
	}
	switch {
	case d.Score > p.Block:
		d.Safety = max(d.Safety, link.Blocked)
	case d.Score > p.Quarantine:
		d.Safety = max(d.Safety, link.Quarantined)
	case d.Score > p.Warn:
		d.Safety = max(d.Safety, link.Warn)
	}
	return d
}
