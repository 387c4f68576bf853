package feedtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

// counted is a link with a counted code, whose id is of a time.
func counted(n int, at time.Time) link.Link {
	l := linktest.Chosen(n, link.Code(fmt.Sprintf("Feed%03d", n)))
	l.CodeKind = link.Counted
	ms := at.UnixMilli()
	for i := range 6 {
		l.ID[i] = byte(ms >> (8 * (5 - i)))
	}
	return l
}

// reader follows creates.
type reader struct {
	store Store
	at    link.Position
	seen  map[link.Code]int
}

// read reads to the end, by pages of n.
func (r *reader) read(t testing.TB, n int) {
	t.Helper()
	for {
		page, next, err := r.store.Creates(t.Context(), r.at, n)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > n {
			t.Errorf("a page of %d has %d links", n, len(page))
		}
		for i := range page {
			r.seen[page[i].Key.Code]++
		}
		if len(page) == 0 && next == r.at {
			return
		}
		r.at = next
	}
}

func begin(t testing.TB, s Store) *reader {
	t.Helper()
	at, err := s.CreatesHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &reader{s, at, map[link.Code]int{}}
}

// creates: every create of a counted code is told once, whatever its id says and however many one
// transaction has, also beside many writers; what was there before, and chosen codes, are not.
func creates(t *testing.T, h Harness) {
	stores := handles(t, h, 0, link.LogBounds{})
	now := time.Now()
	put := func(i int, l link.Link) {
		t.Helper()
		if _, err := stores[i].Create(t.Context(), l); err != nil {
			t.Error(err)
		}
	}
	put(0, counted(0, now))
	r := begin(t, stores[1])
	put(0, counted(1, now))
	put(1, counted(2, now.Add(-24*time.Hour))) // a request that is repeated, or an import
	put(0, linktest.Chosen(900, "chosen"))
	put(0, counted(1, now)) // a retry
	r.want(t, 10, "Feed001", "Feed002")

	var many []link.Creation
	for n := 10; n < 20; n++ {
		many = append(many, link.Creation{Link: counted(n, now)})
	}
	if _, err := stores[1].CreateMany(t.Context(), now, many); err != nil {
		t.Fatal(err)
	}
	r.seen = map[link.Code]int{}
	var codes []link.Code
	for i := range many {
		codes = append(codes, many[i].Link.Key.Code)
	}
	r.want(t, 3, codes...)
	createsBesideWriters(t, stores, put)

	_, _, err := stores[0].Creates(t.Context(), h.Foreign, 1)
	if !errors.Is(err, link.ErrConflict) {
		t.Errorf("a position of another database: %v", err)
	}
	if _, _, err := stores[0].Creates(t.Context(), "x", 1); !errors.Is(err, link.ErrInvalid) {
		t.Errorf("no position: %v", err)
	}
}

// createsBesideWriters reads while eight writers create, and misses none.
func createsBesideWriters(t *testing.T, stores [2]Store, put func(int, link.Link)) {
	t.Helper()
	now := time.Now()
	beside := begin(t, stores[0])
	var writing sync.WaitGroup
	var codes []link.Code
	for w := range 8 {
		for i := range 20 {
			codes = append(codes, counted(100+20*w+i, now).Key.Code)
		}
		writing.Go(func() {
			for i := range 20 {
				put(w%2, counted(100+20*w+i, now.Add(time.Duration(w-i)*time.Minute)))
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		beside.read(t, 7)
	}
	beside.want(t, 7, codes...)
}

// want reads to the end until so many codes were told: a transaction beside the test's own holds up
// who reads.
func (r *reader) want(t testing.TB, n int, codes ...link.Code) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if r.read(t, n); len(r.seen) >= len(codes) || time.Now().After(end) {
			break
		}
	}
	var got []link.Code
	for code, times := range r.seen {
		if got = append(got, code); times > 1 {
			t.Errorf("%s was told %d times", code, times)
		}
	}
	slices.Sort(got)
	if slices.Sort(codes); !slices.Equal(got, codes) {
		t.Errorf("told %v, want %v", got, codes)
	}
}

// lateCreate: a create that others overtake is told when it commits. The control, a reader that goes
// by ids, misses it.
func lateCreate(t *testing.T, h Harness) {
	stores, now := handles(t, h, 0, link.LogBounds{}), time.Now()
	if _, err := stores[0].Create(t.Context(), counted(0, now)); err != nil {
		t.Fatal(err)
	}
	r := begin(t, stores[1])
	commit := h.LateCreate(t, stores[0])
	if _, err := stores[1].Create(t.Context(), counted(1, now.Add(time.Second))); err != nil {
		t.Fatal(err)
	}
	r.read(t, 10) // nothing may be told yet, or all but the one that is late
	byID := lastID(t, stores[1], link.ID{})
	commit()
	r.want(t, 10, "Feed001", "late001")
	if id := lastID(t, stores[1], byID); id != byID {
		t.Error("the control found the late create")
	}
}

// lastID is the last id at an id or behind it.
func lastID(t testing.TB, s Store, since link.ID) link.ID {
	t.Helper()
	page, err := s.List(t.Context(), link.Filter{Since: since}, link.Page{Limit: 1})
	if err != nil || len(page.Links) == 0 {
		t.Fatal(page, err)
	}
	return page.Links[0].ID
}

// createsKept: what a follower of creates has not read is kept, within the bounds, and no follower
// of the change log counts for it.
func createsKept(t *testing.T, h Harness) {
	kept := func(b link.LogBounds) (reads func(n int) error) {
		s := h.Open(t, 5, b)
		var at []link.Position
		for n := range 40 {
			if _, err := s.Create(t.Context(), counted(n, time.Now())); err != nil {
				t.Fatal(err)
			}
			create(t, s, n+100)
			head, err := s.CreatesHead(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, head)
		}
		if err := s.Followers().MoveFollower(t.Context(), "changes", 1, "2"); err != nil {
			t.Fatal(err)
		}
		if err := s.CreateFollowers().MoveFollower(t.Context(), "creates", 1, at[10]); err != nil {
			t.Fatal(err)
		}
		h.Trim(t, s)
		return func(n int) error {
			_, _, err := s.Creates(t.Context(), at[n], 1)
			return err
		}
	}
	reads := kept(link.LogBounds{Age: time.Hour, Bytes: 1 << 20})
	if err := reads(10); err != nil {
		t.Errorf("what was not read: %v", err)
	}
	if err := reads(9); !errors.Is(err, link.ErrConflict) {
		t.Errorf("what was read: %v", err)
	}
	for name, b := range map[string]link.LogBounds{"age": {Age: -time.Hour, Bytes: 1 << 20}, "size": {Age: time.Hour, Bytes: 1}} {
		reads := kept(b)
		if err := errors.Join(reads(34), reads(39)); err != nil {
			t.Errorf("%s: the newest: %v", name, err)
		}
		if err := reads(33); !errors.Is(err, link.ErrConflict) {
			t.Errorf("%s: beyond the bound: %v", name, err)
		}
	}
}

// followsBoth: a position in both logs is kept as it is, and both logs keep what lies behind it.
func followsBoth(t *testing.T, h Harness) {
	s := h.Open(t, 5, link.LogBounds{Age: time.Hour, Bytes: 1 << 20})
	var changes, creates link.Position
	for n := range 40 {
		if _, err := s.Create(t.Context(), counted(n, time.Now())); err != nil {
			t.Fatal(err)
		}
		create(t, s, n+100)
		if n != 10 {
			continue
		}
		var errs [2]error
		changes, errs[0] = s.Head(t.Context())
		creates, errs[1] = s.CreatesHead(t.Context())
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		at := changes + " " + creates + " 17 its/own"
		if err := s.BothFollowers().MoveFollower(t.Context(), "both", 2, at); err != nil {
			t.Fatal(err)
		}
		if got, begun, err := s.BothFollowers().FollowerPosition(t.Context(), "both"); got != at || !begun || err != nil {
			t.Errorf("position %q, %v, %v, want %q", got, begun, err, at)
		}
		if err := s.BothFollowers().MoveFollower(t.Context(), "both", 1, at); !errors.Is(err, link.ErrConflict) {
			t.Errorf("under an older fence: %v", err)
		}
	}
	if h.Trim == nil {
		return
	}
	h.Trim(t, s)
	if _, _, err := s.Events(t.Context(), changes, 1); err != nil {
		t.Errorf("changes that were not read: %v", err)
	}
	if _, _, err := s.Creates(t.Context(), creates, 1); err != nil {
		t.Errorf("creates that were not read: %v", err)
	}
	if _, _, err := s.Events(t.Context(), "1", 1); !errors.Is(err, link.ErrConflict) {
		t.Errorf("changes that were read: %v", err)
	}
}

// createsEnded: what has ended of the creates of a time, by small pages, and nothing else.
func createsEnded(t *testing.T, h Harness) {
	s := h.Open(t, 0, link.LogBounds{})
	at, err := s.CreatesHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	by := linktest.Epoch()
	var want []link.Code
	for n := range 30 {
		l := counted(n, by)
		switch l.Expires = by; n % 6 {
		case 0:
			l.Expires = time.Time{}
		case 1:
			l.Expires = by.Add(time.Millisecond)
		case 2:
			l.Status = link.Disabled
		case 3:
			l.CodeKind = link.Chosen
		default:
			want = append(want, l.Key.Code)
		}
		if _, err := s.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[link.Code]bool{}
	for end := time.Now().Add(time.Minute); len(seen) < len(want) && time.Now().Before(end); {
		keys, next, more, err := s.CreatesEnded(t.Context(), at, by, 3)
		if err != nil || len(keys) > 3 {
			t.Fatal(keys, err)
		}
		for _, k := range keys {
			if seen[k.Code] {
				t.Errorf("%s came twice", k.Code)
			}
			seen[k.Code] = true
		}
		if at = next; !more && len(seen) < len(want) {
			time.Sleep(time.Millisecond) // a transaction beside the test's own holds up who reads
		}
	}
	for _, code := range want {
		if !seen[code] {
			t.Errorf("%s is missing", code)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("%d links ended, want %d", len(seen), len(want))
	}
	if _, _, _, err := s.CreatesEnded(t.Context(), h.Foreign, by, 1); !errors.Is(err, link.ErrConflict) {
		t.Errorf("a position of another database: %v", err)
	}
}
