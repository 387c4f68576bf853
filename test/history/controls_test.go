package history_test

import (
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// at makes a request that lasts a millisecond from so many.
func at(ms int, in asked, out told) request {
	from := time.Duration(ms) * time.Millisecond
	return request{client: ms, asked: in, told: out, call: from, ret: from + time.Millisecond}
}

// seen makes a visit at a time, at a server.
func seen(ms, server int, saw sight, to string) visit {
	from := time.Duration(ms) * time.Millisecond
	return visit{server: server, key: "k", saw: saw, to: to, call: from, ret: from + time.Millisecond}
}

var (
	made    = at(10, asked{kind: create, key: "k", to: "a"}, told{done, link{version: 1, to: "a"}})
	changed = at(20, asked{kind: put, key: "k", match: 1, to: "b"}, told{done, link{version: 2, to: "b"}})
	dead    = at(30, asked{kind: disable, key: "k", match: 2}, told{done, link{version: 3, to: "b", off: true}})
	barred  = at(40, asked{kind: block, key: "k"}, told{result: done})
)

// TestHistoriesAreJudged: what the API may not answer is found, and what it may is not.
func TestHistoriesAreJudged(t *testing.T) {
	open := at(20, asked{kind: put, key: "k", match: 1, to: "b"}, told{result: unknown})
	for name, c := range map[string]struct {
		requests []request
		verdict  porcupine.CheckResult
	}{
		"all of it in order": {[]request{
			made, changed, dead, barred,
			at(50, asked{kind: get, key: "k"}, told{done, link{version: 4, to: "b", off: true, blocked: true}}),
		}, porcupine.Ok},
		"an open change that happened": {[]request{
			made, open, at(50, asked{kind: get, key: "k"}, told{done, link{version: 2, to: "b"}}),
		}, porcupine.Ok},
		"an open change that did not": {[]request{
			made, open, at(50, asked{kind: get, key: "k"}, told{done, link{version: 1, to: "a"}}),
		}, porcupine.Ok},
		"an open change that happened late": {[]request{
			made, open, at(50, asked{kind: get, key: "k"}, told{done, link{version: 1, to: "a"}}),
			at(60, asked{kind: get, key: "k"}, told{done, link{version: 2, to: "b"}}),
		}, porcupine.Ok},
		"an open change that another one beat": {[]request{
			made, open, at(30, asked{kind: put, key: "k", match: 1, to: "c"}, told{done, link{version: 2, to: "c"}}),
			at(50, asked{kind: get, key: "k"}, told{done, link{version: 2, to: "c"}}),
		}, porcupine.Ok},
		"an open change that comes back": {[]request{
			made, open, at(50, asked{kind: get, key: "k"}, told{done, link{version: 2, to: "b"}}),
			at(60, asked{kind: get, key: "k"}, told{done, link{version: 1, to: "a"}}),
		}, porcupine.Illegal},
		"a create is lost": {[]request{
			made, at(20, asked{kind: get, key: "k"}, told{result: missing}),
		}, porcupine.Illegal},
		"a code is handed out twice": {[]request{
			made, at(20, asked{kind: create, key: "k", to: "b"}, told{done, link{version: 1, to: "b"}}),
		}, porcupine.Illegal},
		"a change is lost": {[]request{
			made, changed, at(50, asked{kind: get, key: "k"}, told{done, link{version: 1, to: "a"}}),
		}, porcupine.Illegal},
		"two changes of one version win": {[]request{
			made, changed, at(50, asked{kind: put, key: "k", match: 1, to: "c"}, told{done, link{version: 3, to: "c"}}),
		}, porcupine.Illegal},
		"two that ask for the same": {[]request{
			made, changed, dead, at(35, dead.asked, dead.told),
		}, porcupine.Ok},
		"two that ask for the same, one after a change": {[]request{
			made, changed, dead, at(40, asked{kind: put, key: "k", match: 3, to: "c"}, told{done, link{version: 4, to: "c"}}),
			at(50, dead.asked, dead.told),
		}, porcupine.Illegal},
		"a change that was refused happened": {[]request{
			made, at(20, asked{kind: put, key: "k", match: 1, to: "b"}, told{result: refused}),
			at(50, asked{kind: get, key: "k"}, told{done, link{version: 2, to: "b"}}),
		}, porcupine.Illegal},
		"a killed link is on again": {[]request{
			made, changed, dead, at(50, asked{kind: get, key: "k"}, told{done, link{version: 3, to: "b"}}),
		}, porcupine.Illegal},
		"a blocked link is clean again": {[]request{
			made, barred, at(50, asked{kind: get, key: "k"}, told{done, link{version: 2, to: "a"}}),
		}, porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			h := history{requests: c.requests}
			if got, _ := h.linearizable(); got != c.verdict {
				t.Errorf("%s, want %s", got, c.verdict)
			}
		})
	}
}

// TestVisitsAreJudged: what a visitor may not be shown is found, and what they may is not.
func TestVisitsAreJudged(t *testing.T) {
	open := at(20, asked{kind: put, key: "k", match: 1, to: "b"}, told{result: unknown})
	lost := at(20, asked{kind: put, key: "k", match: 1, to: "c"}, told{result: refused})
	disconnected := outage{server: 0, from: 100 * time.Millisecond, to: 5 * time.Second, within: time.Second}
	for name, c := range map[string]struct {
		requests []request
		visits   []visit
		wrong    string // "" = nothing is
	}{
		"in time":                        {[]request{made, changed}, []visit{seen(5, 0, absent, ""), seen(12, 0, led, "a"), seen(2000, 0, led, "a"), seen(2030, 1, led, "b")}, ""},
		"too late":                       {[]request{made, changed}, []visit{seen(2030, 1, led, "a")}, "version 2 was known"},
		"one that was disconnected":      {[]request{made, changed}, []visit{seen(5900, 0, led, "a")}, ""},
		"for too long":                   {[]request{made, changed}, []visit{seen(6100, 0, led, "a")}, "version 2 was known"},
		"killed":                         {[]request{made, changed, dead}, []visit{seen(50, 0, off, ""), seen(60, 1, led, "b")}, ""},
		"killed, and back":               {[]request{made, changed, dead}, []visit{seen(50, 1, off, ""), seen(3000, 1, led, "b")}, "version 3 was known"},
		"blocked":                        {[]request{made, barred}, []visit{seen(50, 0, blocked, ""), seen(60, 1, led, "a")}, ""},
		"blocked, and back":              {[]request{made, barred}, []visit{seen(3000, 1, led, "a")}, "known to be blocked"},
		"blocked by nobody":              {[]request{made}, []visit{seen(50, 0, blocked, "")}, "nobody asked for that"},
		"off by nobody":                  {[]request{made}, []visit{seen(50, 0, off, "")}, "nobody switched it off"},
		"off for too long":               {[]request{made, changed, dead, at(40, asked{kind: put, key: "k", match: 3, to: "c"}, told{done, link{version: 4, to: "c"}})}, []visit{seen(3000, 1, off, "")}, "version 4 was known"},
		"an acknowledged link is absent": {[]request{made}, []visit{seen(50, 0, absent, "")}, "is absent"},
		"it was asked for before":        {[]request{made}, []visit{seen(5, 1, absent, ""), seen(50, 1, absent, "")}, ""},
		"and is absent for too long":     {[]request{made}, []visit{seen(5, 1, absent, ""), seen(3000, 1, absent, "")}, "is absent"},
		"an open change":                 {[]request{made, open}, []visit{seen(50, 1, led, "b"), seen(60, 1, led, "a")}, ""},
		"an open change that was seen":   {[]request{made, open}, []visit{seen(50, 1, led, "b"), seen(3000, 1, led, "a")}, "version 2 was known"},
		"a change that was refused":      {[]request{made, lost}, []visit{seen(50, 1, led, "c")}, "was refused"},
		"a change that nobody made":      {[]request{made}, []visit{seen(50, 1, led, "x")}, "nobody asked for"},
		"a change that another one beat": {[]request{made, open, at(30, asked{kind: put, key: "k", match: 1, to: "d"}, told{done, link{version: 2, to: "d"}})}, []visit{seen(50, 1, led, "b")}, "version 2 leads to"},
	} {
		t.Run(name, func(t *testing.T) {
			h := history{requests: c.requests, visits: c.visits}
			wrong, _ := h.wrongs(&bounds{late: 2 * time.Second, disconnected: []outage{disconnected}})
			if got := strings.Join(wrong, "\n"); (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
				t.Errorf("%q is wrong, want %q", got, c.wrong)
			}
		})
	}
}
