package capture

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"

	"curt/internal/clicks"
)

// DayKeys gives the secret that visitors are tagged with on a UTC day: one for all
// processes of an installation, and destroyed after the day, so that tags tell
// nothing afterwards. A day may be asked for before it begins, which destroys the keys
// of days that are over, and no other.
type DayKeys interface {
	DayKey(ctx context.Context, day time.Time) ([16]byte, error)
}

const (
	dayMillis = 24 * 60 * 60 * 1000
	// keyWait bounds how long the clicks in the ring wait for a key, once for each question:
	// together with drainEvery less than the 120 ms that kill -9 may take. The question
	// itself goes on for keyLimit, as a store may be far away, and its answer is for the
	// clicks that come then. keyRetry is how long after a failure the next is asked.
	keyWait  = 60 * time.Millisecond
	keyLimit = 5 * time.Second
	keyRetry = time.Second
	// firstKeyWait bounds how long a start waits for the key of its day, when no visitor
	// waits yet.
	firstKeyWait = 2 * time.Second
	// keyAhead is how long before midnight the key of the next day is asked for, and how long
	// after it that of the day once more: then clocks agree that the day before is over, and
	// the store destroys its key.
	keyAhead = 5 * time.Minute
)

// visitorTags makes visitors' tags: SipHash under the day's key of the address and
// a hash of the user agent. The user agent tells apart the people behind one
// address; IPv6 counts by /64, because within it a device changes its address
// several times a day. Owned by one goroutine.
type visitorTags struct {
	keys      DayKeys
	logger    *slog.Logger
	known     [2]dayKey // of two days, for the minutes around midnight
	asked     *keyQuestion
	retry     time.Time
	confirmed int64 // the day whose key was fetched after the day before had ended
	missed    bool  // the last question had no answer, and the log says so
	untagged  uint64
}

// keyQuestion is one that the store was asked. A goroutine of its own waits for the answer,
// and ends with the question's context.
type keyQuestion struct {
	day    int64
	until  time.Time // until when clicks wait for it
	cancel context.CancelFunc
	answer chan keyAnswer // takes one
}

type keyAnswer struct {
	key [16]byte
	err error
}

type dayKey struct {
	day    int64 // days since the epoch, + 1; 0 = none
	k0, k1 uint64
}

// tag returns the tag of a click's visitor; 0 = unknown.
func (v *visitorTags) tag(ctx context.Context, c *clicks.Raw) uint64 {
	key, ok := v.key(ctx, c.Time)
	if !ok {
		v.untagged++
		return 0
	}
	if !c.Addr.IsValid() || c.Addr.IsUnspecified() {
		return 0
	}
	var b [24]byte
	addr := c.Addr.As16()
	copy(b[:16], addr[:])
	if !is4(c.Addr) {
		clear(b[8:16])
	}
	binary.LittleEndian.PutUint64(b[16:], xxhash.Sum64(c.UserAgent))
	return max(siphash.Hash(key.k0, key.k1, b[:]), 1)
}

func is4(a netip.Addr) bool { return a.Is4() || a.Is4In6() }

// key returns the key of a time's day, from memory but for the first of a day.
func (v *visitorTags) key(ctx context.Context, ms int64) (dayKey, bool) {
	day := ms/dayMillis + 1
	slot := &v.known[day&1]
	if slot.day == day {
		return *slot, true
	}
	until := time.Now().Add(keyWait)
	v.ask(ctx, day, until)
	v.wait(ctx)
	if slot.day != day { // perhaps the question that was open was about another day
		v.ask(ctx, day, until)
		v.wait(ctx)
	}
	return *slot, slot.day == day
}

// prepare asks for the keys that clicks will need, before they do, and waits for none.
func (v *visitorTags) prepare(ctx context.Context, now time.Time) {
	if v.asked != nil {
		v.asked.until = now // the clicks of before have waited
		v.wait(ctx)
	}
	ms := now.UnixMilli()
	today, soon := ms/dayMillis+1, (ms+keyAhead.Milliseconds())/dayMillis+1
	over := ms%dayMillis >= keyAhead.Milliseconds() && v.confirmed != today
	if v.known[today&1].day != today || over {
		v.ask(ctx, today, time.Now().Add(keyWait))
	}
	if v.known[soon&1].day != soon {
		v.ask(ctx, soon, time.Now().Add(keyWait))
	}
}

// ask asks the store for a day's key, for which clicks wait until a time, unless a question is
// open or failed just now.
func (v *visitorTags) ask(ctx context.Context, day int64, until time.Time) {
	now := time.Now()
	if v.asked != nil || now.Before(v.retry) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyLimit)
	q := &keyQuestion{day: day, until: until, cancel: cancel, answer: make(chan keyAnswer, 1)}
	v.asked = q
	go func() {
		k, err := v.keys.DayKey(ctx, time.UnixMilli((day-1)*dayMillis).UTC())
		q.answer <- keyAnswer{k, err}
	}()
}

// wait takes the answer of the open question, if it comes before the clicks have to go on.
func (v *visitorTags) wait(ctx context.Context) {
	q := v.asked
	if q == nil {
		return
	}
	select { // without a timer, which most calls do not need
	case a := <-q.answer:
		v.take(ctx, a)
		return
	default:
	}
	left := time.Until(q.until)
	if left <= 0 {
		return
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case a := <-q.answer:
		v.take(ctx, a)
	case <-t.C:
	case <-ctx.Done():
	}
}

func (v *visitorTags) take(ctx context.Context, a keyAnswer) {
	now, day := time.Now(), v.asked.day
	v.asked.cancel()
	v.asked = nil
	if a.err != nil {
		v.retry = now.Add(keyRetry)
		if !v.missed && v.known[day&1].day != day {
			v.missed = true
			v.logger.WarnContext(ctx, "no day key, visitors cannot be distinguished", slog.Any("err", a.err))
		}
		return
	}
	if v.missed {
		v.missed = false
		v.logger.InfoContext(ctx, "day key available, visitors are distinguished again")
	}
	v.known[day&1] = dayKey{day, binary.LittleEndian.Uint64(a.key[:8]), binary.LittleEndian.Uint64(a.key[8:])}
	if now.UnixMilli() >= (day-1)*dayMillis+keyAhead.Milliseconds() {
		v.confirmed = day
	}
}

// close gives an open question up.
func (v *visitorTags) close() {
	if v.asked != nil {
		v.asked.cancel()
		<-v.asked.answer
		v.asked = nil
	}
}
