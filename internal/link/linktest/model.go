package linktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
)

// modelRuns compares a store with Memory over random operations. The seeds are
// fixed, so that a failure comes back; fuzzing finds new ones.
func modelRuns(t *testing.T, h Harness) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 600)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { ModelRun(t, h, script) })
	}
}

// FuzzModel is the body of a driver's native fuzz target.
func FuzzModel(f *testing.F, h Harness) {
	f.Add([]byte("create, replace, delete, and create once more"))
	f.Fuzz(func(t *testing.T, script []byte) { ModelRun(t, h, script[:min(len(script), 300)]) })
}

// ModelRun decodes a script into operations, runs each on the driver and on Memory,
// and compares the answers. Lag is not looked at: Lookup is compared by the cases
// that wait for it.
func ModelRun(t *testing.T, h Harness, script []byte) {
	r := &modelRun{t: t, got: h.Open(t), want: NewMemory(), script: script, features: h.Features}
	r.base = head(t, r.got)
	for len(r.script) > 0 {
		r.step()
		if t.Failed() {
			t.Fatalf("diverged before the last %d bytes of %x", len(r.script), script)
		}
	}
	r.compareWalks()
}

type modelRun struct {
	t         testing.TB
	got, want link.Store
	features  Features
	base      link.Position // of what is compared, where its change log ended before
	script    []byte        // what is left of it
	clock     int
}

// pick takes the next byte of the script as a number below n.
func (r *modelRun) pick(n int) int {
	if len(r.script) == 0 {
		return 0
	}
	b := r.script[0]
	r.script = r.script[1:]
	return int(b) % n
}

func (r *modelRun) step() {
	r.clock++
	switch r.pick(11) {
	case 0, 1, 2:
		l := r.link()
		r.both("create", func(s link.Store) (any, error) { return s.Create(r.t.Context(), l) })
	case 3, 4:
		l := r.changed()
		edit := link.Edit{Principal: "editor", Fields: []link.Was{{Name: "title", Old: json.RawMessage(`"was"`)}}}
		r.both("replace", func(s link.Store) (any, error) { return s.Replace(r.t.Context(), l, edit) })
	case 5:
		k := r.key()
		r.both("get", func(s link.Store) (any, error) { return s.Get(r.t.Context(), k) })
	case 6:
		r.spend()
	case 7:
		r.find()
	case 8:
		many := []link.Link{r.link(), r.link(), r.link()}
		r.createMany(many)
	case 9:
		r.changes(r.pick(20))
	case 10:
		r.reserve()
	}
}

// reserve reserves a key, gives it back, or asks what has it. No reservation lapses while a script runs.
func (r *modelRun) reserve() {
	if !r.features.Reserver {
		return
	}
	c := link.Claim{Key: r.key(), Workspace: []link.WorkspaceID{"a", "b"}[r.pick(2)], For: time.Hour, Most: 3}
	switch r.pick(4) {
	case 0:
		r.both("release", func(s link.Store) (any, error) {
			return nil, s.(link.Reserver).Release(r.t.Context(), c.Key, c.Workspace)
		})
	case 1:
		r.both("occupants", func(s link.Store) (any, error) {
			all, err := s.(link.Reserver).Occupants(r.t.Context(), []link.Key{c.Key, {Domain: "b.example", Code: c.Key.Code}})
			for i := range all {
				all[i].Reservation = timeless(all[i].Reservation)
			}
			return all, err
		})
	default:
		r.both("reserve", func(s link.Store) (any, error) {
			got, found, err := s.(link.Reserver).Reserve(r.t.Context(), c)
			return fmt.Sprintf("%+v %t", timeless(got), found), err
		})
	}
}

// timeless is a reservation without its times, which two stores do not share.
func timeless(r link.Reservation) link.Reservation {
	r.Until, r.Left = time.Time{}, 0
	return r
}

// key is one of few, so that they meet; half have the shape of counted codes.
func (r *modelRun) key() link.Key {
	codes := []link.Code{"Minted7", "minted7", "0000", "zzzzzzzzzz", "a", "alias-1", "long_alias_of_a_link"}
	domains := []link.Domain{"", "", "b.example"}
	return link.Key{Domain: domains[r.pick(len(domains))], Code: codes[r.pick(len(codes))]}
}

func (r *modelRun) link() link.Link {
	l := sample(0, "")
	l.Key = r.key()
	l.ID = r.id(l.Key)
	l.Workspace = []link.WorkspaceID{"a", "b"}[r.pick(2)]
	l.Destination = fmt.Sprintf("https://example.com/%d", r.pick(3))
	flags := r.pick(256)
	l.CodeKind, l.NoIndex, l.ForwardQuery, l.Cacheable = Kind(flags&1 != 0), flags&2 != 0, flags&4 != 0, flags&8 != 0
	if flags&16 != 0 {
		l.Expires = epoch.Add(time.Duration(flags>>5-4) * time.Millisecond)
	}
	l.MaxClicks = uint64(r.pick(4))
	l.Title = fmt.Sprint(r.clock)
	if r.pick(4) == 0 {
		l.Tags = []string{"one", fmt.Sprint(flags)}
	}
	l.Updated = epoch.Add(time.Duration(r.clock) * time.Millisecond)
	return l
}

// id is one of three that are those of a key alone: they meet their key again, and each other.
func (r *modelRun) id(k link.Key) link.ID {
	sum := 0
	for _, b := range []byte(k.String()) {
		sum = (31*sum + int(b)) % 100_003
	}
	return idAt(3*sum + r.pick(3))
}

// changes compares some of the change log after as many as the model has, or fewer.
func (r *modelRun) changes(after int) {
	got, expected := changesAfter(r.t, r.got, r.base), changesAfter(r.t, r.want, "")
	r.compare("changes", unnumbered(got), nil, unnumbered(expected), nil)
	if after >= len(got) {
		return
	}
	rest := got[after+1:]
	some, _, err := r.got.Changes(r.t.Context(), got[after].Sequence.Position(), 5)
	if err != nil || len(some) > min(5, len(rest)) || len(some) == 0 && len(rest) > 0 || !slices.Equal(some, rest[:len(some)]) {
		r.t.Errorf("changes after %d: %v, %v, want the first of %v", got[after].Sequence, some, err, rest)
	}
}

// changed is a link as Replace might get it: mostly of the version that is stored,
// with anything else different.
func (r *modelRun) changed() link.Link {
	l := r.link()
	l.Status, l.Safety = link.Status(r.pick(4)), link.Safety(1+r.pick(5)) // status 0 is invalid
	if stored, err := r.want.Get(r.t.Context(), l.Key); err == nil {
		l.Version = stored.Version
	}
	l.Version += link.Version(r.pick(8) / 7)
	return l
}

func (r *modelRun) spend() {
	if !r.features.Spender {
		return
	}
	k, n := r.key(), uint64(r.pick(3))
	r.both("spend", func(s link.Store) (any, error) { return s.(link.Spender).Spend(r.t.Context(), k, n) })
}

func (r *modelRun) find() {
	if !r.features.Deduper {
		return
	}
	wanted, now := r.link(), epoch.Add(time.Duration(r.pick(8)-4)*time.Millisecond)
	wanted.MaxClicks = 0
	if r.pick(2) == 0 {
		r.both("find", func(s link.Store) (any, error) { return s.(link.Deduper).FindSame(r.t.Context(), wanted, now) })
		return
	}
	r.both("find or create", func(s link.Store) (any, error) {
		l, found, err := s.(link.Deduper).FindOrCreate(r.t.Context(), wanted, now)
		return link.Result{Link: l, Found: found}, err
	})
}

func (r *modelRun) createMany(links []link.Link) {
	if !r.features.Batcher {
		return
	}
	now, entries := epoch.Add(time.Duration(r.pick(8)-4)*time.Millisecond), Entries(links...)
	for i := range entries {
		entries[i].Dedupe = r.features.Deduper && r.pick(2) == 0
	}
	got, errGot := r.got.(link.Batcher).CreateMany(r.t.Context(), now, entries)
	expected, errWant := r.want.(link.Batcher).CreateMany(r.t.Context(), now, entries)
	if errGot != nil || errWant != nil || len(got) != len(expected) {
		r.t.Fatalf("create many: %d results, %v; the model: %d, %v", len(got), errGot, len(expected), errWant)
	}
	for i := range got {
		r.compare(fmt.Sprintf("create many, %s", links[i].Key), got[i].Link, got[i].Err, expected[i].Link, expected[i].Err)
		if got[i].Found != expected[i].Found {
			r.t.Errorf("create many, %s: found is %t", links[i].Key, got[i].Found)
		}
	}
}

func (r *modelRun) both(op string, call func(link.Store) (any, error)) {
	got, errGot := call(r.got)
	expected, errWant := call(r.want)
	r.compare(op, got, errGot, expected, errWant)
}

func (r *modelRun) compare(op string, got any, errGot error, expected any, errWant error) {
	r.t.Helper()
	if g, w := class(errGot), class(errWant); g != w {
		r.t.Errorf("%s: %v; the model: %v", op, errGot, errWant)
	}
	if diff := cmp.Diff(expected, got); errWant == nil && diff != "" {
		r.t.Errorf("%s (-model +got):\n%s", op, diff)
	}
}

// class reduces an error to what the contract names.
func class(err error) string {
	if err == nil {
		return ""
	}
	for _, s := range []error{link.ErrNotFound, link.ErrExists, link.ErrConflict, link.ErrInvalid, link.ErrFull, link.ErrUnavailable, link.ErrUncertain} {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	return err.Error()
}

// compareWalks compares all that walks return at the end.
func (r *modelRun) compareWalks() {
	domain := link.Domain("b.example")
	for _, f := range []link.Filter{{}, {Oldest: true}, {Workspace: "a"}, {Domain: &domain, Oldest: true}, {Workspace: "b", Status: link.Active}} {
		got, expected := walkList(r.t, r.got, f, 3, func() {}), walkList(r.t, r.want, f, 3, func() {})
		inOrder(r.t, f, got)
		// Links of one id, in two workspaces, have no order.
		slices.SortFunc(got, byAge)
		slices.SortFunc(expected, byAge)
		r.compare("list", got, nil, expected, nil)
	}
	got, _ := walkExpired(r.t.Context(), r.t, r.got, "", epoch, 2)
	expected, _ := walkExpired(r.t.Context(), r.t, r.want, "", epoch, 2)
	r.compare("expired", got, nil, expected, nil)
	gotKeys := slices.SortedFunc(walkChosen(r.t, r.got, 2), compareKeys)
	wantKeys := slices.SortedFunc(walkChosen(r.t, r.want, 2), compareKeys)
	r.compare("chosen", gotKeys, nil, wantKeys, nil)
	r.changes(0)
}
