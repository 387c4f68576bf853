package lookalike_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"curt/internal/abuse"
	"curt/internal/abuse/abusetest"
	"curt/internal/abuse/lookalike"
	"curt/internal/link"
)

// judged is what the signals and the default policy make of a URL, without what only an
// account's past tells.
func judged(t *testing.T, p *abuse.Panel, raw string) abuse.Decision {
	t.Helper()
	f := abusetest.Facts(t, raw)
	f.Change = true
	return abuse.Decide(abuse.DefaultPolicy(), p.Inspect(t.Context(), abusetest.Morning(), f))
}

// At least 95 of 100 look-alikes of listed brands are quarantined, and at most 5 of 100
// honest links. "go test -v" shows how many of each family.
func TestPrecisionAndRecall(t *testing.T) {
	p, l := everything(t), lookAlikes(t)
	type rate struct{ caught, all int }
	rules, total := map[string]rate{}, rate{}
	missed := map[string][]string{}
	for _, b := range lookalike.BrandsOf(l) {
		for _, i := range imitations(b) {
			r := rules[i.rule]
			r.all, total.all = r.all+1, total.all+1
			if judged(t, p, "https://"+i.host+"/").Safety >= link.Quarantined {
				r.caught, total.caught = r.caught+1, total.caught+1
			} else {
				missed[i.rule] = append(missed[i.rule], i.host)
			}
			rules[i.rule] = r
		}
	}
	for _, rule := range slices.SortedFunc(maps.Keys(rules), cmp.Compare[string]) {
		r := rules[rule]
		t.Logf("look-alikes, %-28s %5d of %5d quarantined (%.1f %%); missed, of others: %.12v", rule, r.caught, r.all, percent(r.caught, r.all), some(missed[rule]))
	}
	wrong := 0
	honest := [][]string{usual(), hard()}
	for i, name := range []string{"usual", "hard"} {
		var stopped []string
		for _, raw := range honest[i] {
			if judged(t, p, raw).Safety >= link.Quarantined {
				stopped = append(stopped, raw)
			}
		}
		wrong += len(stopped)
		t.Logf("honest, %-5s %5d of %5d quarantined (%.1f %%): %v", name, len(stopped), len(honest[i]), percent(len(stopped), len(honest[i])), some(stopped))
		if name == "hard" && percent(len(stopped), len(honest[i])) > 15 {
			t.Errorf("%d of %d hard links of honest pages are quarantined", len(stopped), len(honest[i]))
		}
	}
	benign := len(honest[0]) + len(honest[1])
	t.Logf("recall %.2f %% (%d of %d); precision %.2f %%; false quarantines %.2f %% (%d of %d)", percent(total.caught, total.all), total.caught, total.all,
		percent(total.caught, total.caught+wrong), percent(wrong, benign), wrong, benign)
	if percent(total.caught, total.all) < 95 {
		t.Error("fewer than 95 % of the look-alikes are quarantined")
	}
	if percent(wrong, benign) > 5 {
		t.Error("more than 5 % of the honest links are quarantined")
	}
}

// A kit on a host of its own is stopped by its host, in whatever folder it lies. On a host
// that was broken into, the path alone is no reason to stop a link: it adds points.
func TestPathsOfKits(t *testing.T) {
	p := everything(t)
	onOwn, paths, scored := 0, 0, 0
	for _, b := range lookalike.BrandsOf(lookAlikes(t)) {
		for _, path := range kitPaths(b.Name) {
			paths++
			if judged(t, p, "https://"+b.Name+"-login.example"+path).Safety >= link.Quarantined {
				onOwn++
			}
			d := judged(t, p, "https://bakery.example"+path)
			if d.Score > 0 {
				scored++
			}
			if d.Safety >= link.Quarantined {
				t.Errorf("the path %s alone is quarantined: %+v", path, d)
			}
		}
	}
	t.Logf("kits' paths: %d of %d quarantined on a look-alike's host; %d of %d add points on another's", onOwn, paths, scored, paths)
	if percent(onOwn, paths) < 95 {
		t.Error("fewer than 95 % are quarantined on a look-alike's host")
	}
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// some returns a few of many, from all over.
func some(all []string) []string {
	const few = 12
	if len(all) <= few {
		return all
	}
	var shown []string
	for i := range few {
		shown = append(shown, all[i*len(all)/few])
	}
	return shown
}
