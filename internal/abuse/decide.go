package abuse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
			return fmt.Errorf("weight of %s: %d, expected 0 to 100", name, points)
		}
	}
	for name, safety := range p.AtLeast {
		if safety < link.Clean || safety > link.Blocked {
			return fmt.Errorf("%s: expected clean, warn, quarantined or blocked", name)
		}
	}
	if p.Warn < 0 || p.Block > 100 || p.Quarantine > p.Block || p.Warn < 100 && p.Warn > p.Quarantine {
		return fmt.Errorf("thresholds %d, %d, %d: expected warn ≤ quarantine ≤ block, from 0 to 100", p.Warn, p.Quarantine, p.Block)
	}
	return nil
}

// Decision is what the findings come to.
type Decision struct {
	Safety   link.Safety // Clean, Warn, Quarantined or Blocked
	Score    int         // 0 to 100
	Findings []Finding   // with their points, most first; nil when there were none

	// Floor is what holds whatever a moderator allows: Blocked by a list, or what AtLeast says.
	Floor link.Safety
}

// Decide adds up the findings. It is a pure function: the same findings under the same
// policy come to the same decision, in whatever order they are given.
//
// Each signal counts once, however often it found something. A finding of Allowed makes
// the decision Clean with score 0: it is the operator's own word, and stands above the
// lists of others. The findings stay, so that a moderator sees what was overruled.
func Decide(p Policy, found []Finding) Decision {
	if len(found) == 0 {
		return Decision{Safety: link.Clean, Floor: link.Clean}
	}
	d := Decision{Findings: slices.Clone(found), Floor: link.Clean}
	allowed, counted := false, map[Name]bool{}
	for i := range d.Findings {
		f := &d.Findings[i]
		f.Points = p.Weights[f.Signal]
		allowed = allowed || f.Signal == Allowed
		if !counted[f.Signal] {
			counted[f.Signal] = true
			d.Score = min(100, d.Score+f.Points)
			d.Floor = max(d.Floor, p.AtLeast[f.Signal])
		}
	}
	d.Safety = d.Floor
	slices.SortFunc(d.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(a.Signal, b.Signal), cmp.Compare(a.Evidence, b.Evidence))
	})
	if allowed {
		d.Safety, d.Floor, d.Score = link.Clean, link.Clean, 0
		return d
	}
	switch {
	case d.Score > p.Block:
		d.Safety = max(d.Safety, link.Blocked)
		if counted[Listed] {
			d.Floor = link.Blocked
		}
	case d.Score > p.Quarantine:
		d.Safety = max(d.Safety, link.Quarantined)
	case d.Score > p.Warn:
		d.Safety = max(d.Safety, link.Warn)
	}
	return d
}

// weighable are the signals that a setting may weigh. Allowed is none: it overrules.
func weighable() []Name {
	return []Name{Listed, YoungDomain, Credentials, Velocity, Country, LookAlike, Shortener, Address, Private}
}

// With returns a copy of p in which some weights are others, as an operator writes them:
// "login_words=10,velocity=0". "" changes nothing. The error says what would be right.
func (p Policy) With(weights string) (Policy, error) {
	p.Weights, p.AtLeast = maps.Clone(p.Weights), maps.Clone(p.AtLeast)
	err := eachPair(weights, func(name string, points int) error {
		if !slices.Contains(weighable(), Name(name)) {
			return fmt.Errorf("unknown signal %q; expected %s", name, joinNames(weighable()))
		}
		p.Weights[Name(name)] = points
		return nil
	})
	if err != nil {
		return Policy{}, err
	}
	return p, p.Validate()
}

// WithThresholds returns p with other thresholds: "warn=40,quarantine=60,block=85". Each
// may be left out; "" changes nothing. The error says what would be right.
func (p Policy) WithThresholds(text string) (Policy, error) {
	places := map[string]*int{"warn": &p.Warn, "quarantine": &p.Quarantine, "block": &p.Block}
	err := eachPair(text, func(name string, points int) error {
		place, known := places[name]
		if !known {
			return fmt.Errorf("unknown threshold %q; expected warn, quarantine, block", name)
		}
		*place = points
		return nil
	})
	if err != nil {
		return Policy{}, err
	}
	return p, p.Validate()
}

// WithRule returns a copy of p in which a finding of one signal brings at least what a
// word says: allow, warn or refuse, whatever the score is.
func (p Policy) WithRule(name Name, word string) (Policy, error) {
	safety, known := map[string]link.Safety{"allow": link.Clean, "warn": link.Warn, "refuse": link.Blocked}[word]
	if !known {
		return Policy{}, fmt.Errorf("expected allow, warn or refuse")
	}
	p.AtLeast = maps.Clone(p.AtLeast)
	p.AtLeast[name] = safety
	return p, p.Validate()
}

// eachPair hands on what stands in "a=1,b=2", each name once.
func eachPair(text string, pair func(name string, points int) error) error {
	if text == "" {
		return nil
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, digits, found := strings.Cut(part, "=")
		points, err := strconv.Atoi(digits)
		if !found || err != nil || points < 0 || points > 100 {
			return fmt.Errorf("%q: expected a name and points from 0 to 100, as name=20", part)
		}
		if seen[name] {
			return fmt.Errorf("%s is set twice", name)
		}
		seen[name] = true
		if err := pair(name, points); err != nil {
			return err
		}
	}
	return nil
}

func joinNames(all []Name) string {
	text := make([]string, len(all))
	for i, n := range all {
		text[i] = string(n)
	}
	return strings.Join(text, ", ")
}
