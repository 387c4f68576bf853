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
// stores, hash looks up in the cache which codes exist.
func OpenCodes(env *compose.Env, s *Stores, known *Cache) (codegen.Generator, *compose.Capability, error) {
	c := &compose.Capability{Name: "codes"}
	grown := func(count func() uint64) func(*telemetry.Metrics) {
		return func(m *telemetry.Metrics) {
			m.Counter("curt_code_grown_total", "Codes longer than CURT_CODE_LENGTH because shorter ones were in use.", count)
		}
	}
	switch env.Config.Codes {
	case "random":
		random := codegen.NewRandom(rand.Reader, env.Config.CodeLength)
		c.Metrics = grown(random.Grown)
		return random, c, nil
	case "words":
		words := codegen.NewWords(rand.Reader)
		c.Metrics = grown(words.Grown)
		return words, c, nil
	case "hash":
		key, err := s.Derive("curt codes by hash")
		if err != nil {
			return nil, c, err
		}
		hash := codegen.NewHash(codegen.HashConfig{
			Key: [16]byte(key), Length: env.Config.CodeLength, MayExist: known.issued.Holds, Random: rand.Reader,
		})
		c.Metrics = grown(hash.Grown)
		return hash, c, nil
	}
	if env.Config.Codes == "snowflake" {
		return openSnowflake(env, s, c), c, nil
	}
	ranges := codegen.NewRange(codegen.RangeConfig{
		Leaser: s.Leases, Permutation: codegen.NewPermutation(s.CodeKey), Length: env.Config.CodeLength, Log: env.Log,
	})
	c.Run("codes", ranges.Run)
	c.Metrics = func(m *telemetry.Metrics) {
		m.Counter("curt_code_leases_waited_total", "Code leases that a create had to wait for.",
			func() uint64 { return ranges.Stats().Inline })
		m.Counter("curt_code_lease_failures_total", "Code leases that failed.",
			func() uint64 { return ranges.Stats().Failures })
	}
	return ranges, c, nil
}

func openSnowflake(env *compose.Env, s *Stores, c *compose.Capability) codegen.Generator {
	config := codegen.SnowflakeConfig{Leases: s.Leases, Now: time.Now, Log: env.Log}
	if env.Config.Snowflake == "permuted" {
		config.Permutation = codegen.NewPermutation(s.CodeKey)
	}
	snowflake := codegen.NewSnowflake(config)
	c.Run("codes", snowflake.Run)
	c.Metrics = func(m *telemetry.Metrics) {
		m.Counter("curt_code_leases_waited_total", "Code leases that a create had to wait for.",
			func() uint64 { return snowflake.Stats().Inline })
		m.Counter("curt_code_lease_failures_total", "Code leases that failed.",
			func() uint64 { return snowflake.Stats().Failures })
		m.Gauge("curt_code_machine_id", "Machine id in the codes of CURT_CODES=snowflake; -1 until one is leased.",
			func() float64 { return float64(snowflake.Stats().Machine) })
		m.Counter("curt_code_clock_waits_total", "Waits for the clock: 4,096 codes in one millisecond, or a clock that went backwards by 10 ms or less.",
			func() uint64 { return snowflake.Stats().Waits })
		m.Counter("curt_code_clock_refusals_total", "Codes refused because the clock went backwards by more than 10 ms.",
			func() uint64 { return snowflake.Stats().Refusals })
	}
	return snowflake
}
