package dashboard_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/backend/sqlite/searchindex"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/search"
)

// What a workspace is after some months. The files are written by the product's own drivers
// before the server starts: over HTTP alone it would take minutes.
const (
	seededLinks  = 100_000
	seededClicks = 5_000_000
	codeLength   = 7 // the server's default
	atOnce       = 20_000
	clickedOnes  = 5_000 // links that were ever clicked
	days         = 90
	clicksOfADay = 200         // of a link that has few
	newLinks     = time.Minute // between two links
)

// seed fills a data folder and returns it.
func seed(t *testing.T, now time.Time) string {
	t.Helper()
	folder := t.TempDir()
	keys := seedLinks(t, folder, now)
	seedClicks(t, folder, now, keys)
	return folder
}

// seedLinks makes the links and what finds them, and returns their keys.
func seedLinks(t *testing.T, folder string, now time.Time) (keys []link.Key) {
	t.Helper()
	ctx := t.Context()
	store, err := sqlite.OpenLinks(ctx, sqlite.LinksConfig{Path: filepath.Join(folder, "curt.db")})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	index, err := searchindex.Open(ctx, searchindex.Config{Path: filepath.Join(folder, "search.db")})
	must(t, err)
	defer func() { must(t, index.Close()) }()
	codeKey, err := store.CodeKey(ctx)
	must(t, err)
	codes := codegen.NewPermutation(codeKey)
	first, err := store.Lease(ctx, codegen.Counter(codegen.DefaultPrefix, codeLength), seededLinks)
	must(t, err)
	random := rand.NewChaCha8([32]byte{1})
	for begin := 0; begin < seededLinks; begin += atOnce {
		made := make([]link.Creation, atOnce)
		for i := range made {
			l := seededLink(begin+i, now)
			if l.Key.Code == "" {
				l.CodeKind = link.Counted
				l.Key.Code = codes.Code(codeLength, first+uint64(begin+i))
			}
			l.ID, err = link.NewID(l.Created, random)
			must(t, err)
			made[i].Link = l
			keys = append(keys, l.Key)
		}
		results, err := store.CreateMany(ctx, now, made)
		must(t, err)
		for _, r := range results {
			must(t, r.Err)
		}
		at, err := index.Position(ctx)
		must(t, err)
		batch := search.Batch{Position: at}
		batch.Position.After = made[len(made)-1].Link.ID
		for i := range made {
			batch.Docs = append(batch.Docs, search.NewDocument(&made[i].Link))
		}
		must(t, index.Apply(ctx, batch))
	}
	return keys
}

// seededLink is link i, the last of which is the newest. A few before it stands what a
// stranger made.
func seededLink(i int, now time.Time) link.Link {
	hosts := []string{"example.com", "shop.example", "docs.example.org", "www.news.example", "xn--bcher-kva.example"}
	paths := []string{"spring-sale", "a/rather/long/path/to/an/article", "p"}
	at := now.Add(-time.Duration(seededLinks-i) * newLinks).UTC().Truncate(time.Millisecond)
	l := link.Link{
		Destination: fmt.Sprintf("https://%s/%s/%d?utm_source=mail", hosts[i%len(hosts)], paths[i%len(paths)], i),
		Workspace:   link.WorkspaceDefault, CreatedBy: auth.AdminKeyID, Status: link.Active, Safety: link.Clean, Redirect: 302, NoIndex: true, Created: at, Updated: at,
	}
	switch {
	case i == seededLinks-5:
		l.Key.Code, l.Title, l.Tags = "hostile", hostile+turned, []string{hostile[:40], "b", "c"}
		l.Destination = "https://a.example/%22%3E%3Cscript%3Ealert(1)%3C/script%3E%3Cimg%20src=x%20onerror=alert(1)%3E?q=%E2%80%AE"
	case i%7 == 0:
		l.Title, l.Tags = fmt.Sprintf("Campaign %d", i/7), []string{"campaign", "spring"}
	case i%11 == 0:
		l.Expires = at.Add(time.Second)
	}
	return l
}

// seedClicks writes what was counted: a few links have most of the clicks, and the group
// of the workspace has all of them.
func seedClicks(t *testing.T, folder string, now time.Time, keys []link.Key) {
	t.Helper()
	store, err := counts.Open(t.Context(), counts.Config{Path: filepath.Join(folder, "clicks.db")})
	must(t, err)
	defer func() { must(t, store.Close()) }()
	today := now.UTC().Truncate(24 * time.Hour)
	crowd, all := newCrowd(), clicked{}
	var deltas []rollup.LinkDelta
	left := uint64(seededClicks)
	for rank := clickedOnes - 1; rank >= 0; rank-- {
		n := min(left, uint64(seededClicks/7/(rank+5)))
		if rank == 0 {
			n = left // so that they add up
		}
		left -= n
		one := clicked{}
		one.spread(today, rank, n)
		for q, n := range one {
			all[q] += n
		}
		deltas = append(deltas, one.delta(keys[len(keys)-3-5*rank], crowd))
	}
	slices.SortFunc(deltas, func(a, b rollup.LinkDelta) int { return cmp.Compare(a.Key.Code, b.Key.Code) })
	for i, part := range [][]rollup.LinkDelta{deltas, {all.delta(clicks.GroupKey(string(link.WorkspaceDefault)), crowd)}} {
		must(t, store.Apply(t.Context(), rollup.Batch{
			State: rollup.State{Generation: uint64(i + 1)},
			Links: func(yield func([]rollup.LinkDelta) bool) {
				for chunk := range slices.Chunk(part, 1000) {
					if !yield(chunk) {
						return
					}
				}
			},
		}))
	}
}
