package clicks

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/dchest/siphash"
)

// DayKeys gives the secret that visitors are tagged with on a UTC day: one for all
// processes of an installation, and destroyed after the day, so that tags tell
// nothing afterwards.
type DayKeys interface {
	DayKey(ctx context.Context, day time.Time) ([16]byte, error)
}

const (
	dayMillis = 24 * 60 * 60 * 1000
	// keyTimeout bounds how long the ring waits for a key: together with drainEvery
	// less than the 120 ms that kill -9 may take. keyRetry is how often that is tried
	// while the store is away.
	keyTimeout = 60 * time.Millisecond
	keyRetry   = time.Second
)

// visitorTags makes visitors' tags: SipHash under the day's key of the address and
// a hash of the user agent. The user agent tells apart the people behind one
// address; IPv6 counts by /64, because within it a device changes its address
// several times a day. Owned by one goroutine.
type visitorTags struct {
	keys     DayKeys
	logger   *slog.Logger
	known    [2]dayKey // of two days, for the minutes around midnight
	retry    time.Time
	untagged uint64
}

type dayKey struct {
	day    int64 // days since the epoch, + 1; 0 = none
	k0, k1 uint64
}

// tag returns the tag of a click's visitor; 0 = unknown.
func (v *visitorTags) tag(ctx context.Context, c *Raw) uint64 {
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
	now := time.Now()
	if now.Before(v.retry) {
		return dayKey{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	k, err := v.keys.DayKey(ctx, time.UnixMilli((day-1)*dayMillis).UTC())
	if err != nil {
		v.retry = now.Add(keyRetry)
		v.logger.WarnContext(ctx, "visitors are not told apart: no day key", slog.Any("err", err))
		return dayKey{}, false
	}
	*slot = dayKey{day, binary.LittleEndian.Uint64(k[:8]), binary.LittleEndian.Uint64(k[8:])}
	return *slot, true
}
