package server

import (
	"context"
	"crypto/rand"

	"curt/internal/codegen"
)

// newCodes makes the generator that CURT_CODES names. The store and the cache are
// there: range leases from the one, hash asks the other which codes exist.
func (s *Server) newCodes(context.Context) error {
	switch s.config.Codes {
	case "random":
		random := codegen.NewRandom(rand.Reader, s.config.CodeLength)
		s.codes = random
		s.countGrown(random.Grown)
	case "hash":
		key, err := s.derive("curt codes by hash")
		if err != nil {
			return err
		}
		hash := codegen.NewHash(codegen.HashConfig{
			Key: [16]byte(key), Length: s.config.CodeLength, Known: s.issued.Holds, Random: rand.Reader,
		})
		s.codes = hash
		s.countGrown(hash.Grown)
	default:
		s.ranges = codegen.NewRange(codegen.RangeConfig{
			Leaser: s.leases, Permutation: codegen.NewPermutation(s.codeKey), Length: s.config.CodeLength, Log: s.log,
		})
		s.codes = s.ranges
		s.countLeases()
	}
	return nil
}
