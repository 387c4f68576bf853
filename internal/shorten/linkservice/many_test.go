package linkservice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

func rows(reqs ...shorten.Request) []create.Row {
	all := make([]create.Row, len(reqs))
	for i, r := range reqs {
		all[i].Request = r
	}
	return all
}

// Generated codes that are taken are replaced, row by row; every new link is announced.
func TestManyTakesTheNextCodes(t *testing.T) {
	var counted []link.Key
	b := newBench(t, func(cfg *linkservice.Config) { cfg.Created = func(k link.Key) { counted = append(counted, k) } })
	b.mustCreate(t, admin(), aliased("c000001"))
	b.mustCreate(t, admin(), aliased("c000003"))
	batch := rows(to("https://example.com/1"), aliased("an-alias"), to("https://example.com/2"), to("javascript:1"), to("https://example.com/3"))
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), batch); err != nil {
		t.Fatal(err)
	}
	for i, want := range []link.Code{"c000004", "an-alias", "c000002", "", "c000005"} {
		if got := batch[i].Result.Link.Key.Code; got != want || (batch[i].Err == nil) != (want != "") {
			t.Errorf("row %d: %s, %v, want %s", i, got, batch[i].Err, want)
		}
	}
	if len(b.codes.burned) != 2 || len(counted) != 3 || len(*b.announced) != 3 || b.counter(t, "curt_links_created_total") != 6 {
		t.Errorf("burned %v, counted %v, announced %v", b.codes.burned, counted, *b.announced)
	}
}

func TestManyChargesEachLinkOrNone(t *testing.T) {
	b := newBench(t)
	free := member("acme", auth.LinksWrite)
	free.Plan = auth.PlanFree // ten at once
	batch := make([]create.Row, 0, 12)
	for i := range 11 {
		batch = append(batch, rows(to(fmt.Sprintf("https://example.com/%d", i)))...)
	}
	_, err := b.CreateMany(t.Context(), noon(), by(free), batch[:1:1])
	if err != nil {
		t.Fatal(err)
	}
	var limited *shorten.LimitedError
	if _, err = b.CreateMany(t.Context(), noon(), by(free), rows(batch[1].Request, batch[2].Request)); err != nil {
		t.Error(err)
	}
	batch = batch[:2]
	for i := range batch {
		batch[i] = create.Row{Request: batch[i].Request}
	}
	b.limits.spent["create:w:acme/1m0s"] = 10
	if _, err = b.CreateMany(t.Context(), noon(), by(free), batch); !errors.As(err, &limited) || b.stored(t) != 3 {
		t.Errorf("over the limit: %v, %d links", err, b.stored(t))
	}
	_, err = b.CreateMany(t.Context(), noon(), by(auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite)), batch)
	wantError(t, "without a key", err, auth.ErrUnauthenticated)
	_, err = b.CreateMany(t.Context(), noon(), by(member("acme", auth.LinksRead)), batch)
	wantError(t, "without the scope", err, auth.ErrForbidden)
	_, err = b.CreateMany(t.Context(), noon(), by(admin()), make([]create.Row, create.MaxMany+1))
	wantError(t, "too many", err, link.ErrInvalid)
}

// lossy loses the first acknowledgements of batches.
type lossy struct {
	*linktest.Memory

	losses *int
	err    error
}

func (l lossy) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	results, err := l.Memory.CreateMany(ctx, now, entries)
	if *l.losses--; *l.losses >= 0 {
		return nil, l.err
	}
	return results, err
}

// A batch whose acknowledgement was lost is sent again with the same ids, and every row
// is answered as it would have been.
func TestManySurvivesLostAcknowledgements(t *testing.T) {
	losses := 2
	memory := linktest.NewMemory()
	b := newBench(t, func(cfg *linkservice.Config) { cfg.Store = lossy{memory, &losses, errWire} })
	batch := rows(deduped(to("https://example.com/")), aliased("an-alias"), aliased("an-alias"), deduped(to("https://example.com/")))
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), batch); err != nil {
		t.Fatal(err)
	}
	if batch[0].Err != nil || batch[0].Result.Found || batch[1].Err != nil || !errors.Is(batch[2].Err, shorten.ErrTaken) || !batch[3].Result.Found {
		t.Errorf("rows: %+v", batch)
	}
	if slice, err := memory.List(t.Context(), link.Filter{}, link.Page{Limit: 10}); err != nil || len(slice.Links) != 2 {
		t.Errorf("%d links, %v", len(slice.Links), err)
	}
	losses = 9
	_, err := b.CreateMany(t.Context(), noon(), by(admin()), rows(to("https://example.com/x"), to("https://example.com/y")))
	wantError(t, "a store that never answers", err, link.ErrUncertain)
}
