package stores

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"

	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/config"
	"curt/internal/telemetry"
)

// floor has the data folder remember how far ids were leased, and refuses a database that lies behind: one
// that was restored, whose newest codes are unknown to it. The file goes with the key of codes, so that another
// database is not compared with it.
func (s *Stores) floor(ctx context.Context) (codegen.Leaser, error) {
	of, err := s.Derive("curt record of code leases")
	if err != nil {
		return nil, err
	}
	f, err := codegen.OpenFloor(ctx, s.Leases, filepath.Join(s.env.Config.Data, "leases-"+hex.EncodeToString(of[:4])+".state"), s.env.Log)
	if errors.Is(err, codegen.ErrRestored) {
		return nil, &config.Error{Setting: "CURT_LINKS", Value: config.Redact(s.env.Config.Links), Want: err.Error() + "; run curt migrate --restored"}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenCodes returns the generator that CURT_CODES names. range and snowflake lease from the
// stores, pool takes keys from them, the others pass over codes that the filter of issued codes knows.
func OpenCodes(ctx context.Context, env *compose.Env, s *Stores, known *Cache) (codegen.Generator, *compose.Capability, error) {
	c := &compose.Capability{Name: "codes"}
	grown := func(count func() uint64) {
		c.Count(func(m *telemetry.Metrics) {
			m.Counter("curt_code_grown_total", "Codes longer than CURT_CODE_LENGTH because shorter ones were in use.", count)
		})
	}
	switch env.Config.Codes {
	case "random":
		random := codegen.NewRandom(rand.Reader, env.Config.CodeLength).Avoid(openIssued(env, s, known, c))
		grown(random.Grown)
		return random, c, nil
	case "words":
		words := codegen.NewWords(rand.Reader).Avoid(openIssued(env, s, known, c))
		grown(words.Grown)
		return words, c, nil
	case "hash":
		key, err := s.Derive("curt codes by hash")
		if err != nil {
			return nil, c, err
		}
		hash := codegen.NewHash(codegen.HashConfig{
			Key: [16]byte(key), Length: env.Config.CodeLength, Issued: openIssued(env, s, known, c), Random: rand.Reader,
		})
		grown(hash.Grown)
		return hash, c, nil
	case "snowflake":
		snowflake, err := newSnowflake(env, s, c)
		if err != nil {
			return nil, c, err
		}
		c.Count(func(m *telemetry.Metrics) { countSnowflake(m, snowflake) })
		return snowflake, c, nil
	case config.CodesPool:
		pool, err := openPool(ctx, env, s, c)
		return pool, c, err
	}
	ranges, err := newRange(env, s, c)
	if err != nil {
		return nil, c, err
	}
	c.Count(func(m *telemetry.Metrics) {
		countLeases(m, func() uint64 { return ranges.Stats().Inline }, func() uint64 { return ranges.Stats().Failures })
	})
	return ranges, c, nil
}

// newRange returns a generator that a loop of the capability looks after.
func newRange(env *compose.Env, s *Stores, c *compose.Capability) (*codegen.Range, error) {
	ids, err := openIDs(env, s, c)
	if err != nil {
		return nil, err
	}
	ranges := codegen.NewRange(codegen.RangeConfig{
		Leaser: ids, Permutation: codegen.NewPermutation(s.CodeKey), Length: env.Config.CodeLength, Log: env.Log,
	})
	c.Run("codes", ranges.Run)
	return ranges, nil
}

// newSnowflake is as newRange.
func newSnowflake(env *compose.Env, s *Stores, c *compose.Capability) (*codegen.Snowflake, error) {
	ids, err := openIDs(env, s, c)
	if err != nil {
		return nil, err
	}
	cfg := codegen.SnowflakeConfig{Leases: ids, Now: time.Now, Log: env.Log}
	if env.Config.Snowflake == "permuted" {
		cfg.Permutation = codegen.NewPermutation(s.CodeKey)
	}
	snowflake := codegen.NewSnowflake(cfg)
	c.Run("codes", snowflake.Run)
	return snowflake, nil
}

// countLeases registers how leases of codes do, or of keys.
func countLeases(m *telemetry.Metrics, waited, failures func() uint64) {
	m.Counter("curt_code_leases_waited_total", "Code leases that a create had to wait for.", waited)
	m.Counter("curt_code_lease_failures_total", "Code leases that failed.", failures)
}

func countSnowflake(m *telemetry.Metrics, s *codegen.Snowflake) {
	countLeases(m, func() uint64 { return s.Stats().Inline }, func() uint64 { return s.Stats().Failures })
	m.Gauge("curt_code_machine_id", "Machine id in the codes of CURT_CODES=snowflake; -1 until one is leased.",
		func() float64 { return float64(s.Stats().Machine) })
	m.Counter("curt_code_clock_waits_total", "Waits for the clock: 4,096 codes in one millisecond, or a clock that went backwards by 10 ms or less.",
		func() uint64 { return s.Stats().Waits })
	m.Counter("curt_code_clock_refusals_total", "Codes refused because the clock went backwards by more than 10 ms.",
		func() uint64 { return s.Stats().Refusals })
}
