package abuse

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"curt/internal/link"
)

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
			return fmt.Errorf("%q is no signal; want %s", name, joinNames(weighable()))
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
			return fmt.Errorf("%q is no threshold; want warn, quarantine, block", name)
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
		return Policy{}, fmt.Errorf("want allow, warn or refuse")
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
			return fmt.Errorf("%q: want a name and points from 0 to 100, as name=20", part)
		}
		if seen[name] {
			return fmt.Errorf("%s is given twice", name)
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
