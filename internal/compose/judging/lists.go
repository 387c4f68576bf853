package judging

import (
	"context"
	"errors"
	"log/slog"

	"curt/internal/abuse/listfile"
	"curt/internal/background"
	"curt/internal/compose"
	"curt/internal/telemetry"
)

// files are lists of the operator that are read again when they change.
type files interface {
	Run(ctx context.Context) error
	Reload(ctx context.Context) error
}

// openLists looks after the operator's lists of destinations, words and signals.
func openLists(env *compose.Env, c *compose.Capability) {
	var all []files
	add := func(name string, l files) {
		all = append(all, l)
		c.Run(name, background.LowPriority(env.Background, l.Run))
	}
	if env.Lists != nil {
		add("blocklists", env.Lists)
	}
	if env.Words != nil {
		add("words", env.Words)
	}
	if env.Sources != nil {
		add("sources", env.Sources)
	}
	if len(all) > 0 {
		c.Run("reload", background.LowPriority(env.Background, func(ctx context.Context) error { return reload(ctx, env, all) }))
	}
}

// reload reads the lists at each signal, until ctx ends.
func reload(ctx context.Context, env *compose.Env, all []files) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-env.Reload:
			var errs []error
			for _, l := range all {
				errs = append(errs, l.Reload(ctx))
			}
			if err := errors.Join(errs...); err != nil {
				env.Log.ErrorContext(ctx, "list reload failed, keeping previous versions", slog.Any("err", err))
			}
		}
	}
}

// countLists registers the counters of lists. Their names are spelled out, so that a search finds
// them.
func countLists(env *compose.Env, m *telemetry.Metrics) {
	if b := env.Lists; b != nil {
		countList(m, b.Stats, "curt_blocklist_entries", "curt_blocklist_bytes", "curt_blocklist_passed_lines", "curt_blocklist_strange_lines",
			"curt_blocklists_unusable", "curt_blocklist_reloads_total", "curt_blocklist_failures_total")
		countList(m, b.AllowStats, "curt_allowlist_entries", "curt_allowlist_bytes", "curt_allowlist_passed_lines", "curt_allowlist_strange_lines",
			"curt_allowlists_unusable", "curt_allowlist_reloads_total", "curt_allowlist_failures_total")
	}
	if w := env.Words; w != nil {
		countList(m, w.ReservedStats, "curt_reserved_word_entries", "curt_reserved_word_bytes", "curt_reserved_word_passed_lines", "curt_reserved_word_strange_lines",
			"curt_reserved_words_unusable", "curt_reserved_word_reloads_total", "curt_reserved_word_failures_total")
		countList(m, w.RefusedStats, "curt_refused_word_entries", "curt_refused_word_bytes", "curt_refused_word_passed_lines", "curt_refused_word_strange_lines",
			"curt_refused_words_unusable", "curt_refused_word_reloads_total", "curt_refused_word_failures_total")
	}
	if f := env.Sources; f != nil {
		countList(m, f.Stats, "curt_signal_list_entries", "curt_signal_list_bytes", "curt_signal_list_passed_lines", "curt_signal_list_strange_lines",
			"curt_signal_lists_unusable", "curt_signal_list_reloads_total", "curt_signal_list_failures_total")
	}
}

func countList(m *telemetry.Metrics, stats func() listfile.Stats, entries, bytes, passed, strange, unusable, reloads, failures string) {
	gauge := func(name, help string, count func(listfile.Stats) int) {
		m.Gauge(name, help, func() float64 { return float64(count(stats())) })
	}
	gauge(entries, "Entries of the lists in use.", func(s listfile.Stats) int { return s.Entries })
	gauge(bytes, "Memory of these entries, in bytes.", func(s listfile.Stats) int { return s.Bytes })
	gauge(passed, "Valid lines of these lists that do not apply.", func(s listfile.Stats) int { return s.Passed })
	gauge(strange, "Invalid lines of these lists, which have no effect.", func(s listfile.Stats) int { return s.Invalid })
	gauge(unusable, "Lists whose newest version could not be loaded.", func(s listfile.Stats) int { return s.Unusable })
	m.Counter(reloads, "List versions loaded.", func() uint64 { return stats().Reloads })
	m.Counter(failures, "List versions that could not be loaded.", func() uint64 { return stats().Failures })
}
