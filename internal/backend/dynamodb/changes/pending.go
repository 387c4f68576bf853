package changes

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/link"
)

// shards are the partitions of pending entries: a partition of DynamoDB takes 1,000 units of writes a
// second, and a pending entry costs two when it comes and two when it goes.
const shards = 16

// The attributes of items of the log.
const (
	attrEntry = "entry" // of a pending item: an entry as JSON; of a chunk: all of them
	attrStamp = "stamp" // orders pending entries of different links
	attrErase = "erase" // the dedupe item that goes with a deleted link
	attrFirst = "first" // sequence of a chunk
	attrHead  = "head"
	attrOld   = "old" // values of changed fields
)

// Config says how a log is kept.
type Config struct {
	Region    string        // of this server, in entries; "" = there is one
	Retention time.Duration // of entries, for followers
	// ReadOnly readers see what others have numbered; only Run numbers what nobody else does.
	ReadOnly bool
}

// Log is the change log. It is safe for many goroutines and processes.
type Log struct {
	db     *ddb.Client
	config Config

	turn chan struct{} // capacity 1: whose round is under way; another one in this process would be in vain
	poke chan struct{} // capacity 1: entries are pending

	mu   sync.Mutex
	last int64   // the newest stamp; guarded by mu
	next *flight // the round that has not begun; nil = nobody waits; guarded by mu
}

// New returns the log of a table. Its requests have a retry budget of their own: a round takes some 20 of them,
// and would fail with each single one after look-ups have spent a common budget.
func New(db *ddb.Client, c Config) *Log {
	return &Log{db: db.Apart(), config: c, turn: make(chan struct{}, 1), poke: make(chan struct{}, 1)}
}

// entry is one of the log as it is stored.
type entry struct {
	Domain    string `json:"d,omitempty"`
	Code      string `json:"c,omitempty"`
	Version   uint64 `json:"v,omitempty"`
	Kind      string `json:"k"`
	ID        string `json:"i,omitempty"`
	Workspace string `json:"w,omitempty"`
	Principal string `json:"p,omitempty"`
	At        int64  `json:"t"`
	Region    string `json:"r,omitempty"`
	Fields    bool   `json:"f,omitempty"` // there are old values
	Keys      string `json:"n,omitempty"` // of an appended entry
}

func (e *entry) key() link.Key {
	return link.Key{Domain: link.Domain(e.Domain), Code: link.Code(e.Code)}
}

func (e *entry) event(at link.Sequence) (link.Event, error) {
	v := link.Event{
		Change: link.Change{Sequence: at, Key: e.key(), Version: link.Version(e.Version)},
		Kind:   link.EventKind(e.Kind), Workspace: link.WorkspaceID(e.Workspace), Principal: e.Principal,
		At: link.TimeOf(e.At), Region: e.Region,
	}
	if id, err := hex.DecodeString(e.ID); err == nil {
		copy(v.ID[:], id)
	}
	return v, v.Parse("", e.Keys)
}

// stamp returns a number above all before it of this process, near the clock.
func (l *Log) stamp(now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = max(l.last+1, now.UnixNano())
	return l.last
}

// Pending returns what a transaction stores beside its link so that an event is in the log: erase is
// the dedupe item that goes with a deleted link, "" = none. Call Pended once it is done.
func (l *Log) Pending(e *link.Event, erase string) ([]types.TransactWriteItem, error) {
	now := time.Now()
	one, err := l.entry(e, now)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(one)
	if err != nil {
		return nil, fmt.Errorf("an entry of the change log: %w", err)
	}
	stamp := l.stamp(now)
	item := ddb.StateKey(pendingShard(e.Key), sortOf(e, stamp))
	item[attrEntry], item[attrStamp] = ddb.Text(string(text)), ddb.Int(stamp)
	if erase != "" {
		item[attrErase] = ddb.Text(erase)
	}
	writes := []types.TransactWriteItem{l.put(item)}
	if one.Fields {
		fields, err := e.FieldsText()
		if err != nil {
			return nil, err
		}
		old := ddb.StateKey(oldOf(e.Key), versionSort(e.Version))
		old[attrOld], old[ddb.TTL] = ddb.Text(fields), l.until(now)
		writes = append(writes, l.put(old))
	}
	return writes, nil
}

func (l *Log) entry(e *link.Event, now time.Time) (*entry, error) {
	keys, err := e.KeysText()
	if err != nil {
		return nil, err
	}
	one := &entry{
		Domain: string(e.Key.Domain), Code: string(e.Key.Code), Version: uint64(e.Version), Kind: string(e.Kind),
		Workspace: string(e.Workspace), Principal: e.Principal, At: now.UnixMilli(), Region: l.config.Region,
		Fields: len(e.Fields) > 0, Keys: keys,
	}
	if !e.ID.IsZero() {
		one.ID = hex.EncodeToString(e.ID[:])
	}
	return one, nil
}

func (l *Log) put(item ddb.Item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: &l.db.State, Item: item}}
}

// until is when an entry of now may go.
func (l *Log) until(now time.Time) types.AttributeValue {
	return ddb.Int(now.Add(l.config.Retention).Unix())
}

// Pended says that a transaction with pending entries is done, so that Run numbers them soon.
func (l *Log) Pended() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// pendingShard is the partition of a link's pending entries; appended entries are spread at random.
func pendingShard(k link.Key) string {
	shard := linkitem.ShardOf(k, shards)
	if k == (link.Key{}) {
		var b [1]byte
		_, _ = rand.Read(b[:]) // never fails
		shard = uint32(b[0]) % shards
	}
	return shardName(shard)
}

func shardName(shard uint32) string { return fmt.Sprintf("pending#%d", shard) }

// sortOf is the place of an entry in its partition: by link, then by version.
func sortOf(e *link.Event, stamp int64) []byte {
	at := append(linkitem.Ordered(e.Key), 0)
	at = append(at, versionSort(e.Version)...)
	at = binary.BigEndian.AppendUint64(at, uint64(stamp))
	if e.Key == (link.Key{}) { // of two servers at once
		at = append(at, rand.Text()...)
	}
	return at
}

func versionSort(v link.Version) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// oldOf is the partition of the old values of a link.
func oldOf(k link.Key) string { return "old#" + k.String() }

// Append implements link.EventLog.
func (l *Log) Append(ctx context.Context, e link.Event) error {
	err := e.Appendable()
	if err == nil {
		err = l.db.Write(ctx, func(ctx context.Context) error {
			writes, err := l.Pending(&e, "")
			if err != nil {
				return err
			}
			// Its place has a number at random, so that a request that is sent again has no second effect.
			return l.db.Put(ctx, &dynamodb.PutItemInput{TableName: aws.String(l.db.State), Item: writes[0].Put.Item})
		})
	}
	if err != nil {
		return fmt.Errorf("append to the change log: %w", err)
	}
	l.Pended()
	return nil
}
