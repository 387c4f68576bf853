package abuse_test

import (
	"strings"
	"testing"

	"curt/internal/abuse"
	"curt/internal/link"
)

func TestAnOperatorWeighs(t *testing.T) {
	p, err := abuse.DefaultPolicy().With("login_words=5,look_alike=100")
	if err != nil || p.Weights[abuse.Credentials] != 5 || p.Weights[abuse.LookAlike] != 100 || p.Weights[abuse.YoungDomain] != 30 {
		t.Errorf("%v, %v", p.Weights, err)
	}
	if abuse.DefaultPolicy().Weights[abuse.Credentials] != 20 {
		t.Error("the default changed")
	}
	p, err = p.WithThresholds("warn=20,block=90")
	if err != nil || p.Warn != 20 || p.Quarantine != 60 || p.Block != 90 {
		t.Errorf("%+v, %v", p, err)
	}
	for word, want := range map[string]link.Safety{"allow": link.Clean, "warn": link.Warn, "refuse": link.Blocked} {
		p, err := abuse.DefaultPolicy().WithRule(abuse.Private, word)
		if got := abuse.Decide(p, found(abuse.Private)).Safety; err != nil || got != want {
			t.Errorf("%s: %d, %v", word, got, err)
		}
	}
	if p, err := abuse.DefaultPolicy().With(""); err != nil || len(p.Weights) != len(abuse.DefaultPolicy().Weights) {
		t.Error(p, err)
	}
	if _, err := abuse.DefaultPolicy().WithThresholds(""); err != nil {
		t.Error(err)
	}
}

func TestWhatAnOperatorMistypes(t *testing.T) {
	for text, want := range map[string]string{
		"login": `"login": expected a name and points`, "login=20": `unknown signal "login"; expected blocklist, `, "login_words=": "expected a name and points", "login_words=x": "from 0 to 100",
		"login_words=101": "from 0 to 100", "login_words=-1": "from 0 to 100", "velocity=1,velocity=2": "velocity is set twice", "velocity=1,": `"": expected a name`,
		"allowlist=1": `unknown signal "allowlist"`, " velocity=1": `unknown signal " velocity"`,
	} {
		if _, err := abuse.DefaultPolicy().With(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"60": "expected a name and points", "quarantined=60": "unknown threshold \"quarantined\"; expected warn, quarantine, block", "quarantine=90": "expected warn ≤ quarantine ≤ block", "block=101": "from 0 to 100",
	} {
		if _, err := abuse.DefaultPolicy().WithThresholds(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := abuse.DefaultPolicy().WithRule(abuse.Private, "block"); err == nil || !strings.Contains(err.Error(), "allow, warn or refuse") {
		t.Error(err)
	}
}
