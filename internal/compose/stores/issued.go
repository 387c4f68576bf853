package stores

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/backend/redis/codefilter"
	"curt/internal/cache/issued"
	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/link"
	"curt/internal/telemetry"
)

// issuedCodes is what generators know of issued codes: the filter of the process, or the one that
// servers share.
type issuedCodes struct {
	own    *issued.Codes      // nil = CURT_CODE_FILTER=redis
	shared *codefilter.Filter // nil = CURT_CODE_FILTER=memory
}

var _ codegen.Issued = issuedCodes{}

// Contains implements codegen.Issued.
func (i issuedCodes) Contains(code link.Code) bool { return i.own != nil && i.own.Holds(code) }

// Query implements codegen.Issued.
func (i issuedCodes) Query(ctx context.Context, codes ...link.Code) []bool {
	if i.shared == nil {
		return make([]bool, len(codes))
	}
	return i.shared.Query(ctx, codes...)
}

// openIssued returns what the generator asks about codes. The shared filter is fed with codes that links were created with
// here, and filled by one server of a fleet where Redis has lost it.
func openIssued(env *compose.Env, s *Stores, known *Cache, c *compose.Capability) issuedCodes {
	if known.issued != nil {
		return issuedCodes{own: known.issued}
	}
	f := codefilter.New(s.Redis, uint64(env.Config.CodeFilterCodes))
	known.changes.created = f.Add
	c.Run("code filter", f.Run)
	filler := &filler{filter: f, links: s.Links, log: env.Log}
	c.Run("code filter refill", s.Once("code filter", filler.run))
	c.Count(func(m *telemetry.Metrics) {
		m.Gauge("curt_code_filter_bytes", "Memory in Redis of the filter of issued codes.", func() float64 { return float64(f.Stats().Bytes) })
		m.Counter("curt_code_filter_queries_total", "Codes looked up in the filter of issued codes in Redis.", func() uint64 { return f.Stats().Queried })
		m.Counter("curt_code_filter_found_total", "Codes that the filter of issued codes in Redis held.", func() uint64 { return f.Stats().Found })
		m.Counter("curt_code_filter_unanswered_total", "Codes not looked up in the filter in Redis because it was unavailable or slow.", func() uint64 { return f.Stats().Unanswered })
		m.Counter("curt_code_filter_added_total", "Codes added to the filter in Redis.", func() uint64 { return f.Stats().Added })
		m.Counter("curt_code_filter_dropped_total", "Codes not added to the filter in Redis because it was unavailable for too long.", func() uint64 { return f.Stats().Dropped })
		m.Counter("curt_code_filter_refills_total", "Times that this server filled the filter in Redis from the link store, because it was new or had been lost.", filler.fills.Load)
	})
	return issuedCodes{shared: f}
}

const (
	// fillEvery is how often it is looked whether Redis has lost bitmaps.
	fillEvery = 10 * time.Second
	// fillShare is the part of the time in which codes are read, at most: a Redis without enough memory loses
	// bitmaps all the time.
	fillShare = 10
)

// filler brings codes of before into a filter that is new or was lost.
type filler struct {
	filter *codefilter.Filter
	links  interface {
		Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error)
	}
	log   *slog.Logger
	fills atomic.Uint64
}

func (f *filler) run(ctx context.Context) error {
	return compose.Retry(ctx, f.log, slog.LevelWarn, "filling the filter of issued codes failed, retrying", "filling the filter of issued codes recovered",
		func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			if !f.filter.Ready() {
				return time.Second, compose.ErrSkipped
			}
			err := f.fill(ctx)
			return max(fillEvery, fillShare*time.Since(began)), err
		})
}

// fill walks the codes once if any bitmap lacks some.
func (f *filler) fill(ctx context.Context) error {
	missing, err := f.filter.Begin(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	f.fills.Add(1)
	for after := link.Cursor(""); ; {
		keys, next, err := f.links.Chosen(ctx, after, 1000)
		if err != nil {
			return fmt.Errorf("read issued codes: %w", err)
		}
		codes := make([]link.Code, len(keys))
		for i, k := range keys {
			codes[i] = k.Code
		}
		if err := f.filter.Put(ctx, codes); err != nil {
			return err
		}
		if after = next; next == "" {
			return f.filter.End(ctx, missing)
		}
	}
}
