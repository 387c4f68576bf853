package settings

import (
	"errors"
	"fmt"

	"curt/internal/abuse"
	"curt/internal/abuse/lookalike"
	"curt/internal/abuse/signals"
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
// a list is never meant so, and nothing would show it.
func listsWork(cfg config.Config, p abuse.Policy) error {
	if len(cfg.Blocklists) == 0 || abuse.Decide(p, []abuse.Finding{{Signal: abuse.Listed}}).Safety > link.Clean {
		return nil
	}
	wrong := &config.Error{
		Setting: "CURT_THRESHOLDS", Value: cfg.Thresholds,
		Want: fmt.Sprintf("entries of CURT_BLOCKLISTS score %d points and would count as clean; expected a threshold below that, or no list", p.Weights[abuse.Listed]),
	}
	if p.Weights[abuse.Listed] < abuse.DefaultPolicy().Weights[abuse.Listed] {
		wrong.Setting, wrong.Value = "CURT_WEIGHTS", cfg.Weights
	}
	return wrong
}

// signals makes what looks at links, but for lists. Those that remember begin empty.
func newSignals(cfg config.Config) ([]abuse.Signal, *signals.Rate, error) {
	lookAlikes, err := lookalike.New(cfg.Brands)
	if err != nil {
		return nil, nil, &config.Error{Setting: "CURT_BRANDS", Value: cfg.Brands, Want: err.Error()}
	}
	shorteners, err := signals.NewShorteners(cfg.ShortenersFile)
	if err != nil {
		return nil, nil, &config.Error{Setting: "CURT_SHORTENERS_FILE", Value: cfg.ShortenersFile, Want: err.Error()}
	}
	words, errWords := signals.NewLoginWords()
	rate, errRate := signals.NewRate()
	origin, errOrigin := signals.NewOrigin()
	ages, errAges := signals.NewAges(signals.AgesConfig{})
	if err := errors.Join(errWords, errRate, errOrigin, errAges); err != nil {
		return nil, nil, fmt.Errorf("create the signals: %w", err)
	}
	return []abuse.Signal{lookAlikes, words, rate, origin, shorteners, signals.IPLiteral{}, signals.PrivateAddress{}, ages}, rate, nil
}
