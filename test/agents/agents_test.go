package agents_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/useragent"
	"curt/test/internal/curttest"
)

// read decodes a file of a package that scripts/npm has installed.
func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "bin", "tools", "npm", "test", "agents", "node_modules", filepath.FromSlash(name)))
	if err != nil {
		curttest.Need(t, "what scripts/npm test/agents installs: "+err.Error())
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// robot is a program that others know, with what it has sent.
type robot struct {
	Pattern   string
	Instances []string
	Tags      []string
}

// person is what a browser has sent, and what it is.
type person struct {
	UserAgent      string
	DeviceCategory string
	Platform       string
}

func robots(t *testing.T) (all []robot) {
	read(t, "crawler-user-agents/crawler-user-agents.json", &all)
	return all
}

func people(t *testing.T) (all []person) {
	read(t, "user-agents/dist/user-agents.json", &all)
	return all
}

// TestRobots looks for robots among people.
func TestRobots(t *testing.T) {
	list := useragent.NewClassifier()
	var found, missed int
	byTag := map[string]*[2]int{} // missed, all
	for _, r := range robots(t) {
		for _, ua := range r.Instances {
			isBot := list.IsBot(ua)
			if isBot {
				found++
			} else {
				missed++
				t.Logf("taken for a person: %s: %s", r.Pattern, ua)
			}
			for _, tag := range r.Tags {
				if byTag[tag] == nil {
					byTag[tag] = &[2]int{}
				}
				byTag[tag][1]++
				if !isBot {
					byTag[tag][0]++
				}
			}
		}
	}
	wrong := map[string]int{}
	n := 0
	for _, p := range people(t) {
		if n++; list.IsBot(p.UserAgent) {
			wrong[p.UserAgent]++
		}
	}
	taken := 0
	for _, ua := range most(wrong) {
		taken += wrong[ua]
		t.Logf("taken for a robot, %d times: %s", wrong[ua], ua)
	}
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		t.Logf("%s: %d of %d missed", tag, byTag[tag][0], byTag[tag][1])
	}
	recall, precision := share(found, found+missed), share(found, found+taken)
	t.Logf("robots: recall %.4f of %d, precision %.4f beside %d people, of whom %d are taken for robots", recall, found+missed, precision, n, taken)
	if found < 1500 || n < 5000 {
		t.Fatal("that is not what was to be looked at")
	}
	if recall < 0.94 || precision < 0.99 {
		t.Error("robots are not told from people")
	}
}

// TestPeople compares devices and systems with what the browsers said of themselves apart from
// their user agents.
func TestPeople(t *testing.T) {
	list := useragent.NewClassifier()
	devices, systems := tally{}, tally{}
	// A browser on a computer with Linux that shows how a page looks on a phone says the one
	// thing there and the other here, so Linux alone says nothing.
	system := map[string]string{"Win32": "Windows", "MacIntel": "macOS", "iPhone": "iOS", "iPad": "iOS", "Linux armv81": "Android", "Linux aarch64": "Android"}
	for _, p := range people(t) {
		c := (&clicklog.Event{UserAgent: []byte(p.UserAgent)}).Click(list)
		devices.add(p.DeviceCategory, c.Device, p.UserAgent)
		if want := system[p.Platform]; want != "" {
			systems.add(want, c.OS, p.UserAgent)
		}
	}
	devices.judge(t, "device", 0.9)
	systems.judge(t, "system", 0.9)
}

// tally counts what was taken for what.
type tally map[[2]string]map[string]int // by what it is and what it was taken for: user agents

func (y tally) add(is, taken, userAgent string) {
	pair := [2]string{is, taken}
	if y[pair] == nil {
		y[pair] = map[string]int{}
	}
	y[pair][userAgent]++
}

// judge prints precision and recall of each value, and wants both of those that are frequent.
func (y tally) judge(t *testing.T, what string, floor float64) {
	t.Helper()
	right, is, taken := map[string]int{}, map[string]int{}, map[string]int{}
	for pair, agents := range y {
		n := 0
		for _, k := range agents {
			n += k
		}
		is[pair[0]] += n
		taken[pair[1]] += n
		if pair[0] == pair[1] {
			right[pair[0]] += n
			continue
		}
		t.Logf("%s: %s is taken for %q %d times, such as %s", what, pair[0], pair[1], n, most(agents)[0])
	}
	for _, value := range slices.Sorted(maps.Keys(is)) {
		recall, precision := share(right[value], is[value]), share(right[value], taken[value])
		t.Logf("%s %s: recall %.4f of %d, precision %.4f", what, value, recall, is[value], precision)
		if is[value] >= 100 && (recall < floor || precision < floor) {
			t.Errorf("%s %s is not told from others", what, value)
		}
	}
}

// most returns keys, those with the most first.
func most(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }
