package redirect

import (
	"errors"

	"curt/internal/link"
)

// Resolver decides what a visitor is answered.
type Resolver struct {
	source  Source
	spender link.Spender
	isBot   func(userAgent string) bool
}

// ResolverConfig names what a Resolver asks.
type ResolverConfig struct {
	Source  Source
	Spender link.Spender // counts down links with a bound of clicks
	// IsBot tells robots, whose visits do not spend a click; nil = nobody is one.
	IsBot func(userAgent string) bool
}

// NewResolver returns a Resolver; Source and Spender are required.
func NewResolver(cfg ResolverConfig) (*Resolver, error) {
	if cfg.Source == nil || cfg.Spender == nil {
		return nil, errors.New("redirect: a resolver needs a source and a spender")
	}
	if cfg.IsBot == nil {
		cfg.IsBot = func(string) bool { return false }
	}
	return &Resolver{source: cfg.Source, spender: cfg.Spender, isBot: cfg.IsBot}, nil
}
