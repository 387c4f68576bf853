package server

import (
	"errors"
	"fmt"

	"curt/internal/abuse"
	"curt/internal/config"
	"curt/internal/link"
)

// policy reads what the findings of signals weigh, and what is done about the sum.
func policy(cfg config.Config) (abuse.Policy, error) {
	p := abuse.DefaultPolicy()
	for _, setting := range []struct {
		name, value string
		read        func(value string) (abuse.Policy, error)
	}{
		{"CURT_WEIGHTS", cfg.Weights, func(value string) (abuse.Policy, error) { return p.With(value) }},
		{"CURT_THRESHOLDS", cfg.Thresholds, func(value string) (abuse.Policy, error) { return p.WithThresholds(value) }},
		{"CURT_SHORTENERS", cfg.Shorteners, func(value string) (abuse.Policy, error) { return p.WithRule(abuse.Shortener, value) }},
		{"CURT_PRIVATE_TARGETS", cfg.PrivateTargets, func(value string) (abuse.Policy, error) { return p.WithRule(abuse.Private, value) }},
	} {
		if setting.value == "" {
			continue // the default policy's
		}
		next, err := setting.read(setting.value)
		if err != nil {
			return abuse.Policy{}, &config.Error{Setting: setting.name, Value: setting.value, Want: err.Error()}
		}
		p = next
	}
	return p, listsWork(cfg, p)
}

// listsWork refuses a policy that lets through as clean what stands on a blocklist:
// nobody names a list for that, and nothing would show it.
func listsWork(cfg config.Config, p abuse.Policy) error {
	if len(cfg.Blocklists) == 0 || abuse.Decide(p, []abuse.Finding{{Signal: abuse.Listed}}).Safety > link.Clean {
		return nil
	}
	wrong := &config.Error{
		Setting: "CURT_THRESHOLDS", Value: cfg.Thresholds,
		Want: fmt.Sprintf("what stands in CURT_BLOCKLISTS has %d points and would be clean; want a threshold below that, or no list", p.Weights[abuse.Listed]),
	}
	if p.Weights[abuse.Listed] < abuse.DefaultPolicy().Weights[abuse.Listed] {
		wrong.Setting, wrong.Value = "CURT_WEIGHTS", cfg.Weights
	}
	return wrong
}

// signals makes what looks at links, but for lists. Those that remember begin empty.
func signals(cfg config.Config) ([]abuse.Signal, error) {
	lookAlikes, err := abuse.NewLookAlikes(cfg.Brands)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_BRANDS", Value: cfg.Brands, Want: err.Error()}
	}
	shorteners, err := abuse.NewShorteners(cfg.ShortenersFile)
	if err != nil {
		return nil, &config.Error{Setting: "CURT_SHORTENERS_FILE", Value: cfg.ShortenersFile, Want: err.Error()}
	}
	words, errWords := abuse.NewLoginWords()
	rate, errRate := abuse.NewRate()
	origin, errOrigin := abuse.NewOrigin()
	ages, errAges := abuse.NewAges(abuse.AgesConfig{})
	if err := errors.Join(errWords, errRate, errOrigin, errAges); err != nil {
		return nil, fmt.Errorf("make the signals: %w", err)
	}
	return []abuse.Signal{lookAlikes, words, rate, origin, shorteners, abuse.IPLiteral{}, abuse.PrivateAddress{}, ages}, nil
}
