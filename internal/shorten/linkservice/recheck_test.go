package linkservice_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/shorten/edit"
	"curt/internal/shorten/linkservice"
)

// A destination that is found bad later stops the links that were made before: all of
// them, once, and none that a person has decided about.
func TestLinksAreJudgedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listed atomic.Bool
		var edition atomic.Uint64
		b, _, j := newCourt(t, func(c *linkservice.Config) {
			c.Judge = func(_ context.Context, _ time.Time, f *abuse.Facts) abuse.Decision {
				if listed.Load() && f.URL.Host() == "later.example" {
					if !f.Change || f.Network.IsValid() {
						t.Errorf("asked about %+v", f)
					}
					return abuse.Decision{Safety: link.Blocked, Score: 100, Findings: []abuse.Finding{{Signal: abuse.Listed, Points: 100}}}
				}
				return abuse.Decision{Safety: link.Clean}
			}
		})
		var bad []link.Link
		for i := range 500 { // more than a page
			url := fmt.Sprintf("https://later.example/%d", i)
			if i%5 != 0 {
				url = fmt.Sprintf("https://example.com/%d", i)
			}
			l := b.mustCreate(t, admin(), to(url))
			if i%5 == 0 {
				bad = append(bad, l)
			}
		}
		fallback := b.mustCreate(t, admin(), leading("https://example.com/", "https://later.example/"))
		trusted := b.mustCreate(t, admin(), to("https://later.example/trusted"))
		if _, err := j.Append(t.Context(), moderation.Entry{
			At: noon(), Entity: moderation.OfLink(trusted.Key), Link: trusted.ID, Action: moderation.ActionDecide, Safety: link.Clean, Actor: "a-person",
		}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		r := b.NewRechecker(edit.RecheckConfig{Every: 24 * time.Hour, Version: edition.Load})
		go func() { ended <- r.Run(ctx) }()

		time.Sleep(time.Hour)
		if n := b.counter(t, "curt_links_rechecked_total"); n != 502 || len(j.all()) != 1 {
			t.Fatalf("the first round judged %v links, %d entries", n, len(j.all()))
		}
		listed.Store(true)
		edition.Add(1)
		time.Sleep(time.Hour)
		for _, l := range append(bad, fallback) {
			if now, err := b.store.Get(t.Context(), l.Key); err != nil || now.Safety != link.Blocked {
				t.Fatalf("%s is %v, %v", l.Key, now.Safety, err)
			}
		}
		if now, err := b.store.Get(t.Context(), trusted.Key); err != nil || now.Safety != link.Clean {
			t.Errorf("what a person decided became %v, %v", now.Safety, err)
		}
		time.Sleep(25 * time.Hour) // another round, which finds nothing new
		if n := b.counter(t, "curt_links_rechecked_total"); n != 3*502 || len(j.all()) != 102 || b.counter(t, "curt_links_rechecked_worse_total") != 101 {
			t.Errorf("judged %v, %d entries, worse %v", n, len(j.all()), b.counter(t, "curt_links_rechecked_worse_total"))
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Nobody waits for a turn of the clock when a list was read anew.
func TestLinksAreJudgedAgainAtOnceWhenAListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var edition atomic.Uint64
		b, _, _ := newCourt(t)
		b.mustCreate(t, admin(), to("https://example.com/"))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		r := b.NewRechecker(edit.RecheckConfig{Every: 24 * time.Hour, Version: edition.Load})
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(time.Hour + time.Second) // between two looks
		began := time.Now()
		r.Poke() // without a change it is none
		synctest.Wait()
		if n := b.counter(t, "curt_links_rechecked_total"); n != 1 {
			t.Errorf("judged %v times without a reason", n)
		}
		edition.Add(1)
		r.Poke()
		synctest.Wait()
		if n := b.counter(t, "curt_links_rechecked_total"); n != 2 || time.Since(began) > 0 {
			t.Errorf("judged %v times after %v", n, time.Since(began))
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A destination that was allowed and is refused: its links are judged at once, in its scope, and no
// others; a round that is under way does not hold them up.
func TestLinksToARevokedDestinationAreJudgedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, j := newCourt(t)
		const url = "https://blocked.example/allowed"
		allowed := func(by link.WorkspaceID) link.Link {
			j.verdicts = map[string]moderation.Entry{url: verdict(link.Clean)}
			return b.mustCreate(t, member(by, auth.LinksWrite), to(url))
		}
		first, second := allowed("acme"), allowed("rival")
		for i := range 500 { // more than a page
			b.mustCreate(t, member("acme", auth.LinksWrite), to(fmt.Sprintf("https://example.com/%d", i)))
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		r := b.NewRechecker(edit.RecheckConfig{Every: 24 * time.Hour})
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(time.Hour + time.Second) // between two looks
		before := b.counter(t, "curt_links_rechecked_total")
		j.withdraw()
		for n, step := range []struct {
			scope  link.WorkspaceID
			second link.Safety
		}{{"acme", link.Clean}, {"", link.Blocked}} {
			began := time.Now()
			r.Revoked(step.scope, moderation.DigestOf(url))
			synctest.Wait()
			for l, want := range map[link.Key]link.Safety{first.Key: link.Blocked, second.Key: step.second} {
				if now, err := b.store.Get(t.Context(), l); err != nil || now.Safety != want {
					t.Errorf("%q: %s is %v, %v, want %v", step.scope, l, now.Safety, err, want)
				}
			}
			if judged := b.counter(t, "curt_links_rechecked_total") - before; time.Since(began) > 0 || judged != float64(1+2*n) {
				t.Errorf("%q: judged %v links after %s", step.scope, judged, time.Since(began))
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
