package stores

import (
	"crypto/rand"
	"time"

	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/telemetry"
)

// OpenCodes returns the generator that CURT_CODES names. range and snowflake lease from the
// stores, the others pass over codes that the filter of issued codes knows.
func OpenCodes(env *compose.Env, s *Stores, known *Cache) (codegen.Generator, *compose.Capability, error) {
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
	}
	ids, err := openIDs(env, s, c)
	if err != nil {
		return nil, c, err
	}
	if env.Config.Codes == "snowflake" {
		return openSnowflake(env, s, ids, c), c, nil
	}
	ranges := codegen.NewRange(codegen.RangeConfig{
		Leaser: ids, Permutation: codegen.NewPermutation(s.CodeKey), Length: env.Config.CodeLength, Log: env.Log,
	})
	c.Run("codes", ranges.Run)
	c.Count(func(m *telemetry.Metrics) {
		m.Counter("curt_code_leases_waited_total", "Code leases that a create had to wait for.",
			func() uint64 { return ranges.Stats().Inline })
		m.Counter("curt_code_lease_failures_total", "Code leases that failed.",
			func() uint64 { return ranges.Stats().Failures })
	})
	return ranges, c, nil
}

func openSnowflake(env *compose.Env, s *Stores, ids codegen.Leaser, c *compose.Capability) codegen.Generator {
	config := codegen.SnowflakeConfig{Leases: ids, Now: time.Now, Log: env.Log}
	if env.Config.Snowflake == "permuted" {
		config.Permutation = codegen.NewPermutation(s.CodeKey)
	}
	snowflake := codegen.NewSnowflake(config)
	c.Run("codes", snowflake.Run)
	c.Count(func(m *telemetry.Metrics) {
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
	})
	return snowflake
}
