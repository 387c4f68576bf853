// Package linkitem says how a link lies in its item in DynamoDB: attributes named like the columns of
// other stores, and those that indexes are made of. Read Marshal first.
package linkitem

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/link"
)

// Attributes that requests name. Every other is the column of a field.
const (
	Key     = "k" // domain/code, the key of the table
	Version = "version"
	Status  = "status"
	Spent   = "spent"
	Limit   = "max_clicks"

	needs = "needs"
	extra = "extra"
)

// The attributes of indexes. Each index is sparse: what has not its attribute is not in it.
const (
	OfWorkspace = "of_workspace" // workspace and shard: lists, by Age
	OfAll       = "of_all"       // shard: lists over all workspaces, and creates, by Age
	OfSame      = "of_same"      // workspace, destination and expiry, where another may stand in, by Age
	Age         = "age"          // id and key
	OfExpiry    = "of_expiry"    // shard, of active links that expire, by Expiry
	Expiry      = "expiry"       // time and key
	OfLate      = "of_late"      // shard, of creates whose id is not of their time, by Late
	Late        = "late"         // time and key
)

// Shards of the indexes. A partition of DynamoDB takes 1,000 writes a second, and an index that takes
// fewer than are made holds up the table.
const (
	WorkspaceShards = 8
	Shards          = 16
)

// KeyOf is the key of a link's item.
func KeyOf(k link.Key) ddb.Item { return ddb.Item{Key: ddb.Text(k.String())} }

// ParseKey reads the key of an item.
func ParseKey(i ddb.Item) link.Key {
	domain, code, _ := strings.Cut(ddb.TextOf(i, Key), "/") // no domain has a slash
	return link.Key{Domain: link.Domain(domain), Code: link.Code(code)}
}

// Ordered is a key in the order of keys: the domain, then the code.
func Ordered(k link.Key) []byte { return append(append([]byte(k.Domain), 0), k.Code...) }

// ParseOrdered is the inverse of Ordered.
func ParseOrdered(b []byte) link.Key {
	domain, code, _ := strings.Cut(string(b), "\x00")
	return link.Key{Domain: link.Domain(domain), Code: link.Code(code)}
}

// ShardOf spreads keys over shards.
func ShardOf(k link.Key, shards uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.String())) // a hash takes all
	return h.Sum32() % shards
}

// WorkspaceShard names a shard of a workspace's list.
func WorkspaceShard(w link.WorkspaceID, shard uint32) string { return fmt.Sprintf("%s#%d", w, shard) }

// Shard names a shard of the other indexes.
func Shard(shard uint32) string { return fmt.Sprint(shard) }

// SameAs names those that may stand in for a link: of one workspace, destination and expiry.
func SameAs(l *link.Link) string {
	return fmt.Sprintf("%s#%016x#%d", l.Workspace, uint64(link.Digest(l.Destination)), link.Millis(l.Expires))
}

// AgeOf is the place of a link in lists: by its id, then by its key.
func AgeOf(l *link.Link) []byte { return append(l.ID[:len(l.ID):len(l.ID)], Ordered(l.Key)...) }

// TimedKey is a place in the order of a time and of keys.
func TimedKey(ms int64, k link.Key) []byte { return append(ddb.Sortable(ms), Ordered(k)...) }

// ParseTimedKey is the inverse of TimedKey.
func ParseTimedKey(b []byte) (ms int64, k link.Key) {
	if len(b) < 8 {
		return 0, link.Key{}
	}
	return ddb.SortableOf(b), ParseOrdered(b[8:])
}

// ChosenShards are the partitions that chosen codes are registered in.
const ChosenShards = 64

// ChosenPartition names one of them.
func ChosenPartition(shard int) string { return "chosen#" + strconv.Itoa(shard) }

// Chosen is the item that registers a chosen code, in the table of state: an index may not show a code
// yet that the change log is past, and whoever fills a filter from it would call the code unknown.
func Chosen(k link.Key) ddb.Item {
	return ddb.StateKey(ChosenPartition(int(ShardOf(k, ChosenShards))), Ordered(k))
}

// Marshal returns the item of a link in its normal form. link.ErrInvalid for a text that is not UTF-8.
func Marshal(l *link.Link) (ddb.Item, error) {
	i := KeyOf(l.Key)
	fields := link.Fields()
	for at := range fields {
		f := &fields[at]
		if f.Column == "" || f.Column == "domain" || f.Column == "code" {
			continue
		}
		value, err := valueOf(f, l)
		if err != nil {
			return nil, fmt.Errorf("%w: %s of %s is not UTF-8", err, f.Column, l.Key)
		}
		if value != nil {
			i[f.Column] = value
		}
	}
	text, err := l.Extra()
	if err != nil {
		return nil, err
	}
	if text != "" {
		i[extra] = ddb.Text(text)
	}
	if n := l.Needs(); n != 0 {
		i[needs] = ddb.Uint(n)
	}
	index(i, l)
	return i, nil
}

// index sets what puts a link into indexes. A tombstone is in none.
func index(i ddb.Item, l *link.Link) {
	if l.Status == link.Deleted {
		return
	}
	i[OfWorkspace] = ddb.Text(WorkspaceShard(l.Workspace, ShardOf(l.Key, WorkspaceShards)))
	i[OfAll] = ddb.Text(Shard(ShardOf(l.Key, Shards)))
	i[Age] = ddb.Bytes(AgeOf(l))
	if l.Status == link.Active && l.Safety == link.Clean && l.MaxClicks == 0 && l.Later.Needs == 0 {
		i[OfSame] = ddb.Text(SameAs(l))
	}
	if l.Status == link.Active && !l.Expires.IsZero() {
		i[OfExpiry] = ddb.Text(Shard(ShardOf(l.Key, Shards)))
		i[Expiry] = ddb.Bytes(TimedKey(l.Expires.UnixMilli(), l.Key))
	}
}

// Changing are the attributes that a change writes or removes. Others stay as Create stored them, or
// are the business of clicks.
func Changing() []string {
	names := []string{needs, extra, OfWorkspace, OfAll, OfSame, Age, OfExpiry, Expiry}
	fields := link.Fields()
	for i := range fields {
		if f := &fields[i]; f.Column != "" && !f.Fixed && !f.Counter {
			names = append(names, f.Column)
		}
	}
	return names
}

// valueOf is a field as an attribute; nil = it holds nothing.
func valueOf(f *link.Field, l *link.Link) (types.AttributeValue, error) {
	switch x := f.Of(l).(type) {
	case *link.ID:
		return ddb.Bytes(x[:]), nil
	case *string:
		if !utf8.ValidString(*x) {
			return nil, link.ErrInvalid
		}
		if *x != "" {
			return ddb.Text(*x), nil
		}
	case *bool:
		if *x {
			return ddb.Flag(true), nil
		}
	case *uint8:
		return number(uint64(*x)), nil
	case *uint16:
		return number(uint64(*x)), nil
	case *uint64:
		return number(*x), nil
	case *time.Time:
		if ms := link.Millis(*x); ms != 0 {
			return ddb.Int(ms), nil
		}
	case *[]string:
		return list(*x)
	}
	return nil, nil //nolint:nilnil // no attribute is no error
}

// number returns nil for 0.
func number(n uint64) types.AttributeValue {
	if n == 0 {
		return nil
	}
	return ddb.Uint(n)
}

func list(texts []string) (types.AttributeValue, error) {
	if len(texts) == 0 {
		return nil, nil //nolint:nilnil // as valueOf
	}
	all := make([]types.AttributeValue, len(texts))
	for i, t := range texts {
		if !utf8.ValidString(t) {
			return nil, link.ErrInvalid
		}
		all[i] = ddb.Text(t)
	}
	return &types.AttributeValueMemberL{Value: all}, nil
}

// Unmarshal returns the link of an item. A link.DamagedError for what Marshal did not write; a reservation is
// link.ErrNotFound.
func Unmarshal(i ddb.Item) (link.Link, error) {
	if _, reserved := ReservationOf(i); reserved {
		return link.Link{}, link.ErrNotFound
	}
	l := link.Link{Key: ParseKey(i)}
	fields := link.Fields()
	for at := range fields {
		f := &fields[at]
		if f.Column != "" && f.Column != "domain" && f.Column != "code" {
			set(f.Of(&l), i, f.Column)
		}
	}
	err := l.SetExtra(ddb.TextOf(i, extra), ddb.UintOf(i, needs))
	if err == nil && (l.ID.IsZero() || l.Version == 0 || l.Status == 0) {
		err = fmt.Errorf("an item without id, version or status")
	}
	if err != nil {
		return link.Link{}, &link.DamagedError{Key: l.Key, Workspace: l.Workspace, Err: err}
	}
	return l, nil
}

func set(to any, i ddb.Item, name string) {
	switch x := to.(type) {
	case *link.ID:
		copy(x[:], ddb.BytesOf(i, name))
	case *string:
		*x = ddb.TextOf(i, name)
	case *bool:
		*x = ddb.FlagOf(i, name)
	case *uint8:
		*x = uint8(ddb.UintOf(i, name))
	case *uint16:
		*x = uint16(ddb.UintOf(i, name))
	case *uint64:
		*x = ddb.UintOf(i, name)
	case *time.Time:
		*x = link.TimeOf(ddb.IntOf(i, name))
	case *[]string:
		if all, ok := i[name].(*types.AttributeValueMemberL); ok {
			for _, v := range all.Value {
				if t, ok := v.(*types.AttributeValueMemberS); ok {
					*x = append(*x, t.Value)
				}
			}
		}
	}
}

// Twin names the item of dedupe that stands for a link: all that has to be equal, so that of many
// who want the same one creates it.
func Twin(l *link.Link) (string, error) {
	text, err := answers(l)
	if err != nil {
		return "", err
	}
	return "same#" + string(l.Workspace) + "#" + hex.EncodeToString(text), nil
}
