package server

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"curt/internal/auth"
	"curt/internal/cache"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
	"curt/internal/redirect"
	"curt/internal/shorten"
)

// openLinks opens the link store and reads its key, which the permutation, the keyed
// digests of codes and the signatures of cursors stand on.
func (s *Server) openLinks(ctx context.Context) error {
	if err := s.openBackend(ctx); err != nil {
		return err
	}
	s.closers = append(s.closers, s.links.Close)
	key, err := s.links.CodeKey(ctx)
	if err != nil {
		return err
	}
	s.codeKey = key
	return nil
}

// derive makes a key for one purpose out of the store's key, so that cursors stay
// good over restarts without a secret of their own.
func (s *Server) derive(purpose string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, s.codeKey[:], nil, purpose, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key of %s: %w", purpose, err)
	}
	return key, nil
}

// newCache puts L1 in front of the link store.
func (s *Server) newCache() error {
	mark := func(ctx context.Context, length int) (uint64, error) {
		return s.links.Leased(ctx, codegen.Counter(codegen.DefaultPrefix, length))
	}
	s.issued = cache.NewIssued(codegen.NewPermutation(s.codeKey), mark, s.links)
	cfg := cache.Config{Bytes: uint64(s.config.CacheSize), Issued: s.issued, Admit: redirect.NewLoopGuard(s.own), Log: s.log}
	if s.config.Lane == "on" {
		cfg.Prepare = redirect.NewPreparer()
	}
	var err error
	s.cache, err = cache.New(cfg, s.links)
	return err
}

// newCreator makes the write path. Every change is announced to the cache before
// its writer hears of it.
func (s *Server) newCreator() *shorten.Creator {
	return shorten.New(shorten.Config{
		Store: s.links, Index: s.finder.index, Ranking: s.finder.index, Codes: s.codes, Limits: ratelimit.NewMemory(),
		Plans: s.ready.plans, Own: s.own, Blocklists: s.ready.blocked, Words: s.ready.words, Once: s.accounts.once,
		Judge: s.newJudge(), Moderator: s.decides, Journal: s.accounts.journal, Country: s.countryOf(),
		Dedupe: s.config.Codes == "hash", // the same URL, the same code
		Host:   s.origin.host, Domains: s.origin.domains,
		Announce: func(c link.Change) { s.cache.Changed(c) }, Minted: s.cache.Minted,
		Random: rand.Reader, Metrics: s.metrics.Registerer(),
	})
}

// openModerator loads the bans, and lets take effect what was decided when the last run
// ended. It tells the cache of every link that it changes, so it comes behind it.
func (s *Server) openModerator(ctx context.Context) error {
	var err error
	s.decides, err = moderation.Open(ctx, moderation.Config{
		Journal: s.accounts.journal, Progress: s.accounts.journal, Links: s.links,
		Announce: func(c link.Change) { s.cache.Changed(c) }, Random: rand.Reader,
		Work: s.processors.work, Metrics: s.metrics.Registerer(), Log: s.log,
	})
	return err
}

// newBudget bounds scans for codes; nil = no bound. Its counts are apart from those of
// creates, so that a flood of scanners makes no limit of creates forget.
func (s *Server) newBudget() *redirect.Budget {
	if s.ready.unknown == nil {
		return nil
	}
	b := redirect.NewBudget(ratelimit.NewMemory(), *s.ready.unknown)
	s.metrics.Counter("curt_unknown_refused_total", "Unknown codes answered 429 because their network asked for too many.", b.Refused)
	return b
}

// newKeys takes the admin key that is set, or the one in the data folder, where the
// first start writes it.
func (s *Server) newKeys(ctx context.Context) (*auth.Keys, error) {
	var anonymous []auth.Scope
	if allowed := s.config.Anonymous; (allowed != nil && *allowed) || (allowed == nil && s.origin.loopback) {
		anonymous = append(anonymous, auth.LinksWrite)
	}
	key := s.ready.adminKey
	if key == "" {
		var err error
		if key, err = s.ownKey(ctx); err != nil {
			return nil, err
		}
	}
	return auth.NewKeys(auth.KeysConfig{AdminKey: key, Anonymous: anonymous, Store: s.accounts.keys, Log: s.log})
}

func (s *Server) ownKey(ctx context.Context) (string, error) {
	path := filepath.Join(s.config.Data, "admin.key")
	key, made, err := auth.LoadOrCreateAdminKey(path, rand.Reader)
	if err != nil {
		return "", err
	}
	if made {
		s.log.InfoContext(ctx, "admin key written", slog.String("file", path))
	}
	exposed, err := auth.KeyFileExposed(path)
	if exposed {
		s.log.WarnContext(ctx, "others can read the admin key; chmod 600 it", slog.String("file", path))
	}
	return key, err
}

// close closes what was opened, in reverse.
func (s *Server) close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	s.closers = nil
	return errors.Join(errs...)
}
