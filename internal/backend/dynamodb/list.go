package dynamodb

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/backend/dynamodb/tables"
	"curt/internal/link"
)

// mostLooked is how many links one page looks at for each that it may return, and at least, where the
// filter matches few.
const (
	mostLooked  = 4
	leastLooked = 2000
)

// afterAll is behind every place by age.
func afterAll() []byte { return bytes.Repeat([]byte{0xff}, 64) }

// List implements link.Store, by an index.
func (s *linkReader) List(ctx context.Context, f link.Filter, p link.Page) (page link.Slice, err error) {
	if p.Limit < 1 || p.Limit > link.MaxPage {
		return link.Slice{}, fmt.Errorf("list: limit %d: %w", p.Limit, link.ErrInvalid)
	}
	w, shards, err := listWalk(f, p.After)
	if err != nil {
		return link.Slice{}, err
	}
	err = s.db.ReadMany(ctx, func(ctx context.Context) error {
		page = link.Slice{}
		m := s.merge(w, shards, 2*p.Limit/len(shards)+4)
		for looked := 0; ; looked++ {
			item, more, err := m.next(ctx)
			if err != nil || !more {
				page.Next = ""
				return err
			}
			if len(page.Links) == p.Limit || looked >= max(leastLooked, mostLooked*p.Limit) {
				return nil
			}
			if page.Next, err = take(f, item, &page); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return link.Slice{}, fmt.Errorf("list: %w", err)
	}
	return page, nil
}

// take adds a link to a page where the filter says so, and returns the cursor behind it.
func take(f link.Filter, item ddb.Item, page *link.Slice) (link.Cursor, error) {
	at := link.Cursor(f.Tag() + "." + base64.RawURLEncoding.EncodeToString(ddb.BytesOf(item, linkitem.Age)))
	l, err := linkitem.Unmarshal(item)
	switch {
	case link.Absent(err):
		return at, nil
	case err != nil:
		return "", err
	}
	if (f.Status == 0 || l.Status == f.Status) && (f.Domain == nil || l.Key.Domain == *f.Domain) && (f.Workspace == "" || l.Workspace == f.Workspace) {
		page.Links = append(page.Links, l)
	}
	return at, nil
}

// listWalk is the range of an index behind a cursor.
func listWalk(f link.Filter, after link.Cursor) (w walk, shards []string, err error) {
	w = walk{index: tables.ByAge, hash: linkitem.OfAll, sort: linkitem.Age, lo: f.Since[:], hi: afterAll(), forward: f.Oldest}
	shards = allShards()
	if f.Workspace != "" {
		w.index, w.hash, shards = tables.ByWorkspace, linkitem.OfWorkspace, nil
		for i := range uint32(linkitem.WorkspaceShards) {
			shards = append(shards, linkitem.WorkspaceShard(f.Workspace, i))
		}
	}
	if after == "" {
		return w, shards, nil
	}
	tag, text, _ := strings.Cut(string(after), ".")
	at, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || tag != f.Tag() || len(at) == 0 {
		return walk{}, nil, link.BadCursor(after)
	}
	if f.Oldest {
		w.lo = append(at, 0) // the next there can be
	} else {
		w.hi = last(at)
	}
	return w, shards, nil
}

// last returns the greatest place below one that any link can have: keys have no byte above 0x7f at
// their end.
func last(at []byte) []byte {
	before := bytes.Clone(at)
	before[len(before)-1]-- // a code's last character is no NUL
	return append(before, 0xff)
}
