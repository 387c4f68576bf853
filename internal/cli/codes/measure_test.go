package codes

import (
	"testing"

	"curt/internal/codegen"
)

func measureAll(t *testing.T, in installation) map[string]measured {
	t.Helper()
	all := map[string]measured{}
	for _, s := range strategies(in) {
		m, err := measure(t.Context(), s, in)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", m)
		if all[m.Strategy] = m; m.Rate <= 0 || m.Exhausted != (m.Example == "") || m.InUse != (m.Strategy == in.inUse) {
			t.Errorf("%s: %+v", m.Strategy, m)
		}
	}
	if len(all) != 6 {
		t.Errorf("%d strategies", len(all))
	}
	return all
}

// within reports figures that are not between two bounds.
func within(t *testing.T, what string, got, least, most float64) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

// In a space that is half full every second insert fails, unless a filter says so before.
func TestHalfFull(t *testing.T) {
	all := measureAll(t, installation{existing: codegen.Space(4) / 2, length: 4, inUse: "random", sample: 20_000})
	for strategy, want := range map[string]struct{ filtered, blind [2]float64 }{
		"range":     {[2]float64{1, 1}, [2]float64{1, 1}},
		"pool":      {[2]float64{1, 1}, [2]float64{1, 1}},
		"snowflake": {[2]float64{1, 1}, [2]float64{1, 1}},
		"random":    {[2]float64{1, 1}, [2]float64{1.9, 2.1}},
		"hash":      {[2]float64{1.4, 1.6}, [2]float64{2.9, 3.1}}, // a look-up where the URL's own code is taken, or always
		"words":     {[2]float64{1, 1}, [2]float64{6, 6.1}},       // all of the first form are taken
	} {
		within(t, strategy+" look-ups", all[strategy].Lookups, want.filtered[0], want.filtered[1])
		within(t, strategy+" look-ups without a filter", all[strategy].Unfiltered, want.blind[0], want.blind[1])
	}
	within(t, "random guesses", all["random"].Guesses, 2, 2)
	within(t, "snowflake guesses", all["snowflake"].Guesses, 1e12, 1e13)
	if all["words"].Guesses != 1 || all["words"].Length < 8 || all["range"].Length != 4 || all["range"].Exhausted {
		t.Errorf("words: %+v", all["words"])
	}
}

// Where all codes are used, range has none to give, and the others give longer ones. No guess finds more than a link.
func TestFull(t *testing.T) {
	for _, existing := range []uint64{codegen.Space(4), 100_000_000_000_000} {
		all := measureAll(t, installation{existing: existing, length: 4, inUse: "range", sample: 5000})
		for _, strategy := range []string{"range", "pool"} {
			if m := all[strategy]; !m.Exhausted || m.Lookups != 0 || m.Length != 0 {
				t.Errorf("%s: %+v", strategy, m)
			}
		}
		for _, strategy := range []string{"random", "hash"} {
			if m := all[strategy]; m.Exhausted || m.Length != 5 || len(m.Example) != 5 || m.Unfiltered <= 5 {
				t.Errorf("%s: %+v", strategy, m)
			}
		}
		if m := all["snowflake"]; m.Exhausted || m.Length != 11 {
			t.Errorf("snowflake: %+v", m)
		}
		for strategy, m := range all {
			within(t, strategy+" guesses", m.Guesses, 1, 1e13)
		}
	}
}

// Memory is that of the filter: none where codes follow from a counter.
func TestMemory(t *testing.T) {
	all := measureAll(t, installation{existing: 1_000_000, length: 7, inUse: "range", sample: 200_000})
	within(t, "range bytes", all["range"].PerCode, 0, 0)
	within(t, "pool bytes", all["pool"].PerCode, 0, 0)
	within(t, "pool memory", all["pool"].Memory, 100e3, 500e3)
	for _, strategy := range []string{"random", "hash", "words", "snowflake"} {
		within(t, strategy+" bytes", all[strategy].PerCode, 4, 12)
		within(t, strategy+" memory", all[strategy].Memory, 4e6, 12e6)
	}
	within(t, "random look-ups", all["random"].Unfiltered, 1, 1.01)
	within(t, "hash look-ups", all["hash"].Lookups, 1, 1.01)
}

// Plain snowflakes sort by time and can be counted on, and nothing else does. It is the control of both figures.
func TestPredictability(t *testing.T) {
	in := installation{existing: 1000, length: 7, inUse: "snowflake", sample: 20_000}
	for strategy, m := range measureAll(t, in) {
		within(t, strategy+" next guessed", m.NextGuess, 0, 0.001)
		within(t, strategy+" order", m.Order, 0, 0.05)
	}
	in.plain = true
	plain := measureAll(t, in)["snowflake"]
	within(t, "plain snowflake next guessed", plain.NextGuess, 0.5, 1)
	within(t, "plain snowflake order", plain.Order, 0.999, 1)
	in.poolKeys = "snowflake"
	within(t, "order of a pool of plain snowflakes", measureAll(t, in)["pool"].Order, 0.999, 1)
}

func TestCountersAreLeases(t *testing.T) {
	c, ctx := &counters{}, t.Context()
	if first, err := c.Lease(ctx, "a", 10); err != nil || first != 0 {
		t.Errorf("%d, %v", first, err)
	}
	if err := c.Skip(ctx, "a", 5); err != nil {
		t.Error(err)
	}
	if err := c.Raise(ctx, "a", 15, 20); err != nil {
		t.Error(err)
	}
	if mark, err := c.Leased(ctx, "a"); err != nil || mark != 20 {
		t.Errorf("%d, %v", mark, err)
	}
}
