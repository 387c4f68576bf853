package cache_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"curt/internal/cache"
	"curt/internal/link"
)

func change(seq link.Sequence, v link.Version) link.Change {
	return link.Change{Sequence: seq, Version: v}
}

// vouch wants what is told of a version of a key.
func vouch(t *testing.T, r *cache.Recent, what string, h uint64, v link.Version, asOf link.Sequence, want bool) {
	t.Helper()
	if got := r.Vouches(h, v, asOf); got != want {
		t.Errorf("%s: version %d of key %d, read at %d, is vouched for: %t", what, v, h, asOf, got)
	}
}

func TestNothingIsVouchedForBeforeTheLogIsRead(t *testing.T) {
	r := cache.NewRecent()
	vouch(t, r, "before the beginning", 1, 1, 100, false)
	if r.Advance(1, change(1, 1)) {
		t.Error("a change was taken before the beginning")
	}
	if _, wanted := r.Unknown(); wanted {
		t.Error("what was before is wanted already")
	}
	r.Begin(10)
	vouch(t, r, "at the head", 1, 1, 10, true)
	vouch(t, r, "below the head", 1, 1, 9, false)
	r.Lost()
	vouch(t, r, "after the position was lost", 1, 1, 10, false)
	if at, begun := r.Head(); at != 10 || begun {
		t.Errorf("head %d, begun %t", at, begun)
	}
}

func TestChangesOverturnOlderVersions(t *testing.T) {
	r := cache.NewRecent()
	r.Begin(10)
	for _, step := range []struct {
		seq  link.Sequence
		v    link.Version
		want bool
	}{{11, 5, true}, {11, 9, true}, {10, 9, true}, {13, 9, false}, {12, 4, true}} {
		if got := r.Advance(1, change(step.seq, step.v)); got != step.want {
			t.Errorf("advance to %d: %t", step.seq, got)
		}
	}
	if at, _ := r.Head(); at != 12 {
		t.Errorf("heard to %d, want 12: what came twice or too soon is nothing new", at)
	}
	vouch(t, r, "the version of the change", 1, 5, 10, true)
	vouch(t, r, "an older one", 1, 4, 12, false)
	vouch(t, r, "another key", 2, 1, 10, true)
	r.Heard(2, 7) // its place in the log is not known yet
	vouch(t, r, "older than a hint", 2, 6, 12, false)
	vouch(t, r, "as new as a hint", 2, 7, 12, true)
	r.Heard(2, 6)
	vouch(t, r, "an older hint", 2, 6, 12, false)
	r.Advance(2, change(13, 6))
	vouch(t, r, "the log is behind the hint", 2, 6, 13, false)
}

// What lies in a hole of the log is not known, however small the hole.
func TestAHoleForgetsWhatIsBelow(t *testing.T) {
	for hole := range link.Sequence(4) {
		r := cache.NewRecent()
		r.Begin(10)
		r.Read(1, change(11, 5))
		r.Read(2, change(12+hole, 5))
		vouch(t, r, "before the hole", 3, 1, 11, hole == 0)
		vouch(t, r, "behind the hole", 3, 1, 11+hole, true)
		if low, wanted := r.Unknown(); !wanted || hole > 0 && low != 11+hole || hole == 0 && low != 10 {
			t.Errorf("a hole of %d: nothing is known below %d, wanted %t", hole, low, wanted)
		}
	}
}

// What the log had before is added below; what came later has the last word.
func TestWhatWasBeforeIsRecalled(t *testing.T) {
	r := cache.NewRecent()
	r.Begin(10)
	r.Advance(1, change(11, 8))
	r.Heard(2, 7)
	below := []link.Change{change(8, 3), change(9, 6), change(10, 5)}
	if !r.Before(0, 7, []uint64{3, 2, 1}, below) {
		t.Error("there is no more, at 7")
	}
	vouch(t, r, "from the log below", 3, 2, 11, false)
	vouch(t, r, "from the log below", 3, 3, 7, true)
	vouch(t, r, "a hint is newer", 2, 6, 11, false)
	vouch(t, r, "a later change is newer", 1, 7, 11, false)
	vouch(t, r, "below what was recalled", 9, 1, 6, false)
	if r.Before(0, 0, []uint64{1, 2, 3, 4, 5, 6, 4}, []link.Change{
		change(1, 1), change(2, 1), change(3, 1), change(4, 1), change(5, 1), change(6, 1), change(7, 4),
	}) {
		t.Error("there is more below the first change")
	}
	vouch(t, r, "twice in a page", 4, 3, 11, false)
	vouch(t, r, "from the beginning on", 9, 1, 0, true)
	if _, wanted := r.Unknown(); wanted {
		t.Error("more is wanted than there is")
	}
	for name, page := range map[string][]link.Change{
		"nothing": nil, "not up to what is known": {change(8, 1), change(9, 1)}, "not from where it was asked": {change(9, 1), change(10, 1)},
	} {
		r := cache.NewRecent()
		r.Begin(10)
		if r.Before(0, 7, make([]uint64, len(page)), page) {
			t.Errorf("%s: it goes on", name)
		}
		vouch(t, r, name, 9, 1, 9, false)
	}
	r = cache.NewRecent()
	r.Begin(0)
	if _, wanted := r.Unknown(); wanted {
		t.Error("a log without a change has something before")
	}
	r.Begin(10)
	if r.Complete(0); r.Vouches(9, 1, 9) {
		t.Error("what is not in the log is vouched for")
	}
	if _, wanted := r.Unknown(); wanted {
		t.Error("more is wanted than the log has")
	}
}

// Only so many changes are remembered. What was forgotten is vouched for by nobody, and a
// key that changed again since keeps its newer version.
func TestWhatIsForgottenIsNotVouchedFor(t *testing.T) {
	r := cache.NewRecent()
	r.Begin(0)
	for n := range link.Sequence(cache.Remembered) {
		h := uint64(n) + 100
		if n == 1 {
			h = 7 // the second change
		}
		r.Read(h, change(n+1, 5))
	}
	vouch(t, r, "all are remembered", 100, 4, cache.Remembered, false)
	vouch(t, r, "from the beginning on", 9, 1, 0, true)
	r.Read(7, change(cache.Remembered+1, 6))
	vouch(t, r, "the first was forgotten", 9, 1, 0, false)
	vouch(t, r, "the first was forgotten", 9, 1, 1, true)
	r.Read(8, change(cache.Remembered+2, 6))
	vouch(t, r, "it changed again", 7, 5, cache.Remembered, false)
	vouch(t, r, "the third is remembered", 102, 4, cache.Remembered, false)
	for n := range uint64(cache.Unnumbered) {
		r.Heard(1<<40+n, 5)
	}
	vouch(t, r, "as many hints as may be", 1<<40, 4, cache.Remembered, false)
	r.Heard(1<<50, 5)
	vouch(t, r, "one more", 1<<50, 4, cache.Remembered, false)
	vouch(t, r, "the hint after the one that made room", 1<<40+1, 4, cache.Remembered, false)
}

// A source that lags answers as of a position that was the present one at least its lag
// ago, and not much longer.
func TestWhatALaggingSourceMayBeBehind(t *testing.T) {
	const lag = 100 * time.Millisecond
	r, random := cache.NewRecent(), rand.New(rand.NewPCG(1, 8))
	if _, known := r.AsOf(time.Hour, 0); known {
		t.Error("known before the beginning")
	}
	r.Begin(5)
	if at, known := r.AsOf(time.Hour, 0); at != 5 || !known {
		t.Errorf("a source that does not lag: %d, %t", at, known)
	}
	type moment struct {
		at   time.Duration
		head link.Sequence
	}
	begun, now, head := time.Hour, time.Hour, link.Sequence(5)
	var past []moment
	before := func(at time.Duration) (head link.Sequence) {
		for _, m := range past {
			if m.at <= at {
				head = m.head
			}
		}
		return head
	}
	for range 2000 {
		past = append(past, moment{now, head})
		seq, known := r.AsOf(now, lag)
		switch {
		case known && (now-begun < lag || seq > before(now-lag)):
			t.Fatalf("%s after the beginning: as of %d, and the head was %d a lag ago", now-begun, seq, before(now-lag))
		case !known && now-begun > 3*lag:
			t.Fatalf("%s after the beginning nothing is known", now-begun)
		case known && seq < before(now-4*lag):
			t.Fatalf("as of %d, and the head was %d four lags ago", seq, before(now-4*lag))
		}
		if random.IntN(3) == 0 {
			head++
			r.Advance(uint64(head), change(head, 1))
		}
		now += time.Duration(random.Int64N(int64(lag) / 2))
	}
	r.Lost()
	if _, known := r.AsOf(now, lag); known {
		t.Error("known after the position was lost")
	}
}

func TestASettledPositionIsOfAWhileAgo(t *testing.T) {
	r, now := cache.NewRecent(), time.Hour
	r.MarkCalm(now) // nothing is known yet
	r.Begin(5)
	r.MarkCalm(now)
	if _, known := r.CalmPosition(); known {
		t.Error("calm at once")
	}
	r.Advance(1, change(6, 1))
	now += cache.WarmWithin - 1
	r.MarkCalm(now)
	if seq, known := r.CalmPosition(); known {
		t.Errorf("calm at %d a moment too soon", seq)
	}
	now++
	r.MarkCalm(now)
	if seq, known := r.CalmPosition(); !known || seq != 5 {
		t.Errorf("calm at %d, %t; want 5", seq, known)
	}
	r.Lost()
	if _, known := r.CalmPosition(); known {
		t.Error("calm after the position was lost")
	}
}

// XFetch: the nearer the end and the dearer the load, the likelier; after the end always.
func TestWhoLoadsAnewBeforeTheEnd(t *testing.T) {
	for _, c := range []struct {
		left, cost time.Duration
		chance     float64
		want       bool
	}{
		{0, 0, 0, true},
		{-1, time.Second, 0.5, true},
		{1, 0, 0.999, false},
		{time.Second, time.Second, 0.63, false},
		{time.Second, time.Second, 0.64, true},
		{time.Second, 2 * time.Second, 0.39, false},
		{time.Second, 2 * time.Second, 0.4, true},
		{time.Second, time.Second, 0, false},
	} {
		if got := cache.Early(c.left, c.cost, c.chance); got != c.want {
			t.Errorf("%s left, a cost of %s, chance %v: %t", c.left, c.cost, c.chance, got)
		}
	}
}

// A new beginning knows nothing of the log that was read before.
func TestANewBeginningForgetsThePositionsBefore(t *testing.T) {
	const lag = 100 * time.Millisecond
	r, now := cache.NewRecent(), time.Hour
	r.Begin(1000)
	r.Complete(0)
	for range 100 { // positions of the first log are calm
		now += cache.WarmWithin / 10
		r.MarkCalm(now)
		r.AsOf(now, lag)
	}
	if _, known := r.CalmPosition(); !known {
		t.Fatal("nothing is calm")
	}
	r.Lost()
	r.Begin(20)
	if _, wanted := r.Unknown(); !wanted {
		t.Error("what the new log had before is not wanted")
	}
	if seq, known := r.AsOf(now, lag); known {
		t.Errorf("as of %d, of the log before", seq)
	}
	if seq, known := r.CalmPosition(); known {
		t.Errorf("calm at %d, of the log before", seq)
	}
}

// TestPartitionsAreVouchedForByThemselves: what was read before a change of any partition is not
// vouched for by how far another one was heard.
func TestPartitionsAreVouchedForByThemselves(t *testing.T) {
	in := func(partition uint16, seq link.Sequence, v link.Version) link.Change {
		return link.Change{Partition: partition, Sequence: seq, Version: v}
	}
	r := cache.NewRecent()
	r.Begin(10, 3)
	for want, asOf := range map[bool][][]link.Sequence{
		true:  {{10, 3}, {11, 3}, {10, 4}, {10, 3, 0}, {10, 3, 7}},
		false: {nil, {10}, {10, 2}, {9, 3}, {9, 1000}, {1000, 2}},
	} {
		for _, heads := range asOf {
			if r.Vouches(9, 1, heads...) != want {
				t.Errorf("read as of %v: vouched for is %t", heads, !want)
			}
		}
	}
	for _, step := range []struct {
		ch   link.Change
		want bool
	}{{in(0, 11, 5), true}, {in(1, 11, 6), false}, {in(1, 4, 6), true}, {in(2, 2, 9), false}, {in(2, 1, 7), true}, {in(link.MaxPartitions, 1, 9), false}} {
		if got := r.Advance(1, step.ch); got != step.want {
			t.Errorf("%+v: taken is %t", step.ch, got)
		}
	}
	for v, want := range map[link.Version]bool{6: false, 7: true} { // it moved from partition to partition
		if r.Vouches(1, v, 11, 4, 1) != want {
			t.Errorf("version %d: vouched for is %t", v, !want)
		}
	}
	r.Advance(1, in(0, 12, 4)) // a change of before it moved, heard late
	if r.Vouches(1, 6, 12, 4, 1) {
		t.Error("the arrival of a change decides instead of its version")
	}
	// What was before is recalled by partition, below what others know.
	if !r.Before(1, 0, []uint64{2, 1, 1}, []link.Change{in(1, 1, 8), in(1, 2, 1), in(1, 3, 9)}) {
		t.Error("nothing more of the first partition is wanted")
	}
	if r.Vouches(2, 7, 10, 0) || !r.Vouches(2, 8, 10, 0) || r.Vouches(1, 8, 10, 3) || r.Vouches(9, 1, 9, 0) {
		t.Error("what was recalled is not known, or more than that is")
	}
	if r.Complete(0); r.Vouches(9, 1, 9, 0) {
		t.Error("what is not in the log is vouched for")
	}
	if _, wanted := r.Unknown(); wanted {
		t.Error("more is wanted than there is")
	}
}

// TestPartitionsShareWhatIsRemembered: what falls out moves only the mark of its own partition, and
// never back.
func TestPartitionsShareWhatIsRemembered(t *testing.T) {
	r := cache.NewRecent()
	r.Begin()
	r.Read(1, link.Change{Partition: 1, Sequence: 1, Version: 5})
	for n := range link.Sequence(cache.Remembered - 1) {
		r.Read(uint64(n)+100, change(n+1, 5))
	}
	if r.Vouches(1, 4, cache.Remembered) || !r.Vouches(9, 1) {
		t.Error("not all are remembered")
	}
	r.Read(2, link.Change{Partition: 1, Sequence: 5, Version: 5}) // behind a hole
	if r.Vouches(9, 1, 0, 1) || r.Vouches(9, 1, 0, 3) || !r.Vouches(9, 1, 0, 4) {
		t.Error("the mark of the partition with the hole is wrong")
	}
	r.Read(3, change(cache.Remembered, 5))
	if r.Vouches(9, 1, 0, 4) || !r.Vouches(9, 1, 1, 4) {
		t.Error("the mark of the other partition is wrong")
	}
}
