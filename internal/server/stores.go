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
	"time"

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
	if err := s.openStores(ctx); err != nil {
		return err
	}
	key, err := s.keyring.CodeKey(ctx)
	if err != nil {
		return err
	}
	s.codeKey = key
	return s.openAccounts(ctx)
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

// soleFresh is how long a link in use is served without a question to a store that nobody
// else writes to. Every change is announced here, so that the question only makes good for a
// fault; after five minutes, as with others, 100,000 hot links asked 333 a second, a third of
// the CPU time while they did.
const soleFresh = time.Hour

// newCache puts L1 in front of the link store.
func (s *Server) newCache(context.Context) error {
	mark := func(ctx context.Context, length int) (uint64, error) {
		return s.leases.Leased(ctx, codegen.Counter(codegen.DefaultPrefix, length))
	}
	s.issued = cache.NewIssued(s.links, codegen.NewCounts(codegen.NewPermutation(s.codeKey), mark))
	cfg := cache.Config{Bytes: uint64(s.config.CacheSize), Issued: s.issued, Admit: redirect.NewLoopGuard(s.own), Shared: s.shared(), Heard: s.heard, Log: s.log}
	if !cfg.Shared {
		cfg.Fresh = soleFresh
	}
	if len(s.config.LinksReplicas) > 0 {
		cfg.Lag = s.config.LinksReplicaLag + time.Second // for the question that is under way
	}
	if s.config.Lane == "on" {
		cfg.Prepare = redirect.NewPreparer(transport(s.config))
	}
	s.share(&cfg)
	var err error
	s.cache, err = cache.New(cfg, s.links)
	return err
}

// silence is how long the changes of others may go unheard: then links that they killed
// may live on in L1, and the server wants no traffic.
const silence = 5 * time.Second

var errSilence = errors.New("the change log was not read for too long")

// dependencies are what /readyz asks. A server that only follows links goes on without a
// store that takes writes, as long as it hears what others change; but whatever its role, none
// wants traffic that a database answers and cannot serve: that lasts until somebody mends it,
// and meanwhile another server may be able to.
func (s *Server) dependencies() []dependency {
	all := append([]dependency{{"links", s.roles.judges(), s.links.Healthy}}, s.needs...)
	if h, ok := s.clicks.rollups.(answering); ok {
		all = append(all, dependency{"analytics", false, h.Healthy})
	}
	all = append(all, s.eventDependencies()...)
	if s.clicks.counted != nil {
		all = append(all, dependency{"clickhouse", false, s.clicks.counted.Healthy})
	}
	if s.redis != nil {
		all = append(all, dependency{"redis", false, func() error { return errors.Join(s.redis.Healthy(), s.redis.Refused()) }})
	}
	if s.shared() && s.cache != nil {
		all = append(all, dependency{"changes", true, func() error {
			if s.cache.Behind() > silence {
				return errSilence
			}
			return nil
		}})
	}
	return all
}

// newLinks makes the services of links. Every change is announced to the cache before
// its writer hears of it.
func (s *Server) newLinks() *shorten.Services {
	cfg := shorten.Config{
		Store: s.links, Codes: s.codes, Limits: s.newLimits(),
		Plans: s.ready.plans, Own: s.own, Blocklists: s.ready.blocked, Words: s.ready.words, Once: s.accounts.once,
		Judge: s.newJudge(), Moderator: s.decides, Journal: s.accounts.journal, Country: s.countryOf(),
		Dedupe: s.config.Codes == "hash", // the same URL, the same code
		Host:   s.origin.host, Domains: s.origin.domains,
		Announce: s.announce, Random: rand.Reader, Metrics: s.metrics.Registerer(),
	}
	if s.finder.index != nil { // else the interfaces would not be nil
		cfg.Index = s.finder.index
	}
	if s.finder.ranker != nil {
		cfg.Ranking = s.finder.index
	}
	if s.cache != nil {
		cfg.Created = s.cache.Created
		if s.config.CacheWarm {
			cfg.Made = s.cache.Warm
		}
	}
	return shorten.New(cfg)
}

// announce tells the cache of a change, and other servers. A server without one serves no
// links.
func (s *Server) announce(c link.Change) {
	switch {
	case s.cache != nil:
		s.cache.Announce(c)
	case s.teller != nil:
		s.teller.announce(c)
	}
}

// openModerator loads the bans, and lets take effect what was decided when the last run
// ended. It tells the cache of every link that it changes, so it comes behind it.
func (s *Server) openModerator(ctx context.Context) error {
	var err error
	s.decides, err = moderation.Open(ctx, moderation.Config{
		Journal: s.accounts.journal, Progress: s.accounts.journal, Links: s.links, Peers: s.accounts.peers,
		Announce: s.announce, Random: rand.Reader,
		Work: s.processors.work, Aside: s.questions.answer, Metrics: s.metrics.Registerer(), Log: s.log,
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
