package linkitem

import (
	"time"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/link"
)

// The attributes of a reservation. No link has them.
const (
	Holder = "held_by"
	Since  = "held_since"
	Until  = "held_until"
)

// ReservedShard names a shard of the index by expiry that has reservations, by when they lapse.
func ReservedShard(shard uint32) string { return "reserved#" + Shard(shard) }

// Reservation is what lies under the key of a link that a workspace may create. It is in no list, and in a part of the
// index by expiry that walks of expired links do not read.
type Reservation struct {
	Key          link.Key
	Workspace    link.WorkspaceID
	Since, Until int64 // Unix milliseconds
}

// Item returns what is stored.
func (r *Reservation) Item() ddb.Item {
	i := KeyOf(r.Key)
	i[Holder], i[Since], i[Until] = ddb.Text(string(r.Workspace)), ddb.Int(r.Since), ddb.Int(r.Until)
	i[OfExpiry], i[Expiry] = ddb.Text(ReservedShard(ShardOf(r.Key, Shards))), ddb.Bytes(TimedKey(r.Until, r.Key))
	return i
}

// ReservationOf returns the reservation that an item is; ok = false: it is a link, or nothing.
func ReservationOf(i ddb.Item) (r Reservation, ok bool) {
	if _, ok := i[Holder]; !ok {
		return Reservation{}, false
	}
	return Reservation{ParseKey(i), link.WorkspaceID(ddb.TextOf(i, Holder)), ddb.IntOf(i, Since), ddb.IntOf(i, Until)}, true
}

// Lapsed reports whether it holds nothing any more.
func (r *Reservation) Lapsed(now time.Time) bool {
	return link.Lapsed(r.Since, r.Until, now.UnixMilli())
}

// At returns what callers are told.
func (r *Reservation) At(now time.Time) link.Reservation {
	return link.Reservation{
		Key: r.Key, Workspace: r.Workspace, Until: link.TimeOf(r.Until), Left: time.Duration(r.Until-now.UnixMilli()) * time.Millisecond,
	}
}

// HeldPartition has the reservations of a workspace once more, by key, for their number. The first item has a
// number that grows with each, so that they are counted one after the other.
func HeldPartition(w link.WorkspaceID) string { return "held#" + string(w) }

// Counted is the item that counts for the number of the workspace's reservations. DynamoDB removes it after it lapsed.
func (r *Reservation) Counted() ddb.Item {
	i := r.CountedKey()
	i[Since], i[Until] = ddb.Int(r.Since), ddb.Int(r.Until)
	i[ddb.TTL] = ddb.Int(r.Until/1000 + int64(time.Hour/time.Second))
	return i
}

// CountedKey is the key of Counted.
func (r *Reservation) CountedKey() ddb.Item {
	return ddb.StateKey(HeldPartition(r.Workspace), heldSort(r.Key))
}

// heldSort lies behind the item with the number, which has the sort key of one byte.
func heldSort(k link.Key) []byte { return append([]byte{1}, Ordered(k)...) }
