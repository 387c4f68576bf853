package fill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"curt/bench/internal/traffic"
	"curt/internal/backend/sqlite/searchindex"
	"curt/internal/link"
	"curt/internal/search"
)

const (
	// Index is the file's name in the data folder of curt.
	Index = "search.db"

	// OtherDomain is the further domain that some links of a Busy store are on.
	OtherDomain = "go.example.com"

	// indexed is the documents of one full segment of search.db: the index ends up
	// with the segments that merging small ones would have left, without the merges.
	indexed = 1 << 16

	// between is the time between two creates, which spreads 10 million over 19 months.
	between = 5 * time.Second
)

// begun is when the first link of a Busy store was made.
func begun() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }

// Busy is a store after years of use: links of several kinds, made one after the
// other and found by words, many of them clicked, and one clicked ten million times.
type Busy struct {
	*Links

	Hot link.Code // the link of HotClicks
}

// FillBusy is Fill for a Busy store, with its search index and its statistics, all
// written by the product's own drivers. It leaves the index a little behind, as a
// stop does; the server that is started on the folder brings it to the end.
func FillBusy(ctx context.Context, folder string, n int, progress io.Writer) (b *Busy, err error) {
	index := (*searchindex.Index)(nil)
	defer func() {
		if index != nil {
			err = errors.Join(err, index.Close())
		}
	}()
	open := func() (err error) {
		if index == nil {
			index, err = searchindex.Open(ctx, searchindex.Config{Path: filepath.Join(folder, Index)})
		}
		return err
	}
	b = &Busy{}
	b.Links, err = fillWith(ctx, folder, n, progress, content{
		batch: indexed, change: vary,
		beside: func(ctx context.Context, made []link.Creation) error {
			if err := open(); err != nil {
				return err
			}
			return put(ctx, index, made)
		},
	})
	if err == nil {
		err = open()
	}
	if err != nil {
		return nil, err
	}
	b.Hot = b.Code(0)
	if err := b.click(ctx, index, progress); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	return b, nil
}

// put indexes links as search.Indexer does, at full speed.
func put(ctx context.Context, index *searchindex.Index, made []link.Creation) error {
	at, err := index.Position(ctx)
	if err != nil {
		return err
	}
	batch := search.Batch{Position: at}
	for i := range made {
		l := &made[i].Link
		batch.Docs = append(batch.Docs, search.NewDocument(l))
		if string(l.ID[:]) > string(batch.Position.After[:]) {
			batch.Position.After = l.ID
		}
	}
	if err := index.Apply(ctx, batch); err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = index.Tidy(ctx, false)
	}
	return err
}

// vary makes a link one of a Busy store, by its number alone.
func vary(id uint64, l *link.Link) (err error) {
	l.Created = begun().Add(time.Duration(id) * between)
	l.Updated = l.Created
	if l.ID, err = link.NewID(l.Created, &dice{id, 1}); err != nil {
		return err
	}
	d := &dice{id, 2}
	switch kind := d.of(100); max(kind, plainBelow(id)) {
	case 0:
		l.Status = link.Disabled
	case 1, 2:
		l.Expires = l.Created.Add(24 * time.Hour)
	case 3:
		l.Expires = begun().AddDate(60, 0, 0)
	case 4:
		l.Starts = begun().AddDate(50, 0, 0)
	case 5:
		l.MaxClicks = 1000
	case 6, 7:
		l.Key.Domain = OtherDomain
	}
	if d.of(5) == 0 {
		l.Title = Word(d.of(Words)) + " " + Word(d.of(Words)) + " " + Word(d.of(Words))
	}
	if d.of(4) == 0 {
		l.Tags = append(l.Tags, Tag(d.of(Tags)*d.of(Tags)/Tags))
	}
	if d.of(10) == 0 {
		l.Tags = append(l.Tags, CommonTag)
	}
	return nil
}

// The texts of links in a Busy store.
const (
	Words = 8000 // that a title is made from
	Tags  = 500  // beside CommonTag, some far more frequent than others

	CommonTag = "newsletter" // one link in ten
)

// Word returns word i, 0 <= i < Words.
func Word(i int) string {
	const syllables = "badogirufenoshilametukopyrawizes"
	part := func(i int) string { return syllables[i%16*2:][:2] }
	return part(i) + part(i/16) + part(i/256) + strconv.Itoa(i/4096)
}

// Tag returns tag i, 0 <= i < Tags.
func Tag(i int) string { return "campaign-" + strconv.Itoa(i) }

// URL returns where link i leads.
func (b *Busy) URL(i int) string { return string(traffic.NewURLs().Append(nil, b.id(i))) }

// Rare returns a word that only link i has.
func (b *Busy) Rare(i int) string {
	path, _, _ := strings.Cut(b.URL(i), "?")
	return path[strings.LastIndexByte(path, '-')+1:]
}

// Plain reports whether link i is one that a create with an address alone makes.
func (b *Busy) Plain(i int) bool {
	id := b.id(i)
	return max((&dice{id, 2}).of(100), plainBelow(id)) > 7
}

// plainBelow keeps the first links plain, among them the Hot one.
func plainBelow(id uint64) int {
	if id < 100 {
		return 99
	}
	return 0
}

// dice draws numbers that depend on a seed alone (SplitMix64).
type dice struct{ seed, at uint64 }

func (d *dice) next() uint64 {
	d.at++
	x := d.seed*0x9e3779b97f4a7c15 + d.at*0xd1b54a32d192ed03
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (d *dice) of(n int) int { return int(d.next() % uint64(n)) }

// Read implements io.Reader for link.NewID.
func (d *dice) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(d.next() >> 32)
	}
	return len(b), nil
}
