package abuse_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"curt/internal/abuse"
	"curt/internal/link"
)

func found(names ...abuse.Name) []abuse.Finding {
	var f []abuse.Finding
	for _, n := range names {
		f = append(f, abuse.Finding{Signal: n})
	}
	return f
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		found  []abuse.Finding
		safety link.Safety
		score  int
	}{
		"nothing":                       {nil, link.Clean, 0},
		"young":                         {found(abuse.YoungDomain), link.Clean, 30},
		"young, login, fast":            {found(abuse.YoungDomain, abuse.Credentials, abuse.Velocity), link.Quarantined, 65},
		"young, fast, abroad":           {found(abuse.YoungDomain, abuse.Velocity, abuse.Country), link.Clean, 55},
		"just not above 60":             {found(abuse.YoungDomain, abuse.Credentials, abuse.Country), link.Clean, 60},
		"look-alike":                    {found(abuse.LookAlike), link.Quarantined, 65},
		"just not above 85":             {found(abuse.LookAlike, abuse.Credentials), link.Quarantined, 85},
		"look-alike, young":             {found(abuse.LookAlike, abuse.YoungDomain), link.Blocked, 95},
		"look-alike with a login":       {found(abuse.LookAlike, abuse.Credentials, abuse.Country), link.Blocked, 95},
		"one signal counts once":        {found(abuse.YoungDomain, abuse.YoungDomain, abuse.YoungDomain), link.Clean, 30},
		"listed":                        {found(abuse.Listed), link.Blocked, 100},
		"no more than 100":              {found(abuse.Listed, abuse.LookAlike, abuse.YoungDomain), link.Blocked, 100},
		"a shortener is warned of":      {found(abuse.Shortener), link.Warn, 0},
		"a shortener that looks alike":  {found(abuse.Shortener, abuse.LookAlike), link.Quarantined, 65},
		"allowed":                       {found(abuse.Listed, abuse.Allowed, abuse.Shortener), link.Clean, 0},
		"what the policy does not know": {found("of_tomorrow"), link.Clean, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := abuse.Decide(abuse.DefaultPolicy(), c.found)
			if got.Safety != c.safety || got.Score != c.score || len(got.Findings) != len(c.found) {
				t.Errorf("got safety %d, score %d, %d findings; want %d, %d, %d",
					got.Safety, got.Score, len(got.Findings), c.safety, c.score, len(c.found))
			}
			for range 5 {
				shuffled := slices.Clone(c.found)
				rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
				if again := abuse.Decide(abuse.DefaultPolicy(), shuffled); !slices.Equal(again.Findings, got.Findings) || again.Safety != got.Safety {
					t.Errorf("another order: %+v, not %+v", again, got)
				}
			}
		})
	}
}

// No moderator can allow what a list or a rule of the operator blocks.
func TestTheFloorIsWhatTheScoreDoesNotSay(t *testing.T) {
	refusing, err := abuse.DefaultPolicy().WithRule(abuse.Private, "refuse")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		found []abuse.Finding
		floor link.Safety
	}{
		"nothing":             {nil, link.Clean},
		"by the score":        {found(abuse.LookAlike, abuse.YoungDomain), link.Clean},
		"a shortener":         {found(abuse.LookAlike, abuse.YoungDomain, abuse.Shortener), link.Warn},
		"listed":              {found(abuse.Listed, abuse.LookAlike), link.Blocked},
		"refused by a rule":   {found(abuse.Private), link.Blocked},
		"listed, but allowed": {found(abuse.Listed, abuse.Allowed), link.Clean},
	} {
		if got := abuse.Decide(refusing, c.found); got.Floor != c.floor || got.Safety < got.Floor {
			t.Errorf("%s: %v, safety %v; want %v", name, got.Floor, got.Safety, c.floor)
		}
	}
}

func TestPoliciesThatNobodyMeans(t *testing.T) {
	for name, spoil := range map[string]func(*abuse.Policy){
		"weight below 0":               func(p *abuse.Policy) { p.Weights[abuse.Listed] = -1 },
		"weight above 100":             func(p *abuse.Policy) { p.Weights[abuse.Listed] = 101 },
		"legal by a machine":           func(p *abuse.Policy) { p.AtLeast[abuse.Listed] = link.Legal },
		"no safety":                    func(p *abuse.Policy) { p.AtLeast[abuse.Listed] = 0 },
		"blocks before it quarantines": func(p *abuse.Policy) { p.Block = 50 },
		"warns last":                   func(p *abuse.Policy) { p.Warn = 70 },
		"never, twice":                 func(p *abuse.Policy) { p.Block = 101 },
	} {
		p := abuse.DefaultPolicy()
		if spoil(&p); p.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := abuse.DefaultPolicy().Validate(); err != nil {
		t.Error(err)
	}
}
