package changes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
)

func pending(code link.Code, version uint64, stamp int64) waiting {
	return waiting{stamp: stamp, sort: []byte(code), entry: entry{Code: string(code), Version: version}}
}

// TestOrderOfPendingEntries: by the time of writers, and those of a link by version, whatever clocks say.
func TestOrderOfPendingEntries(t *testing.T) {
	all := []waiting{
		pending("a", 3, 10), pending("b", 1, 15), pending("a", 1, 30), pending("a", 2, 20), pending("a", 3, 40), pending("c", 1, 5),
	}
	order(all)
	var got []string
	for i := range all {
		got = append(got, all[i].entry.Code+strings.Repeat("'", int(all[i].entry.Version)))
	}
	if diff := cmp.Diff([]string{"c'", "a'", "b'", "a''", "a'''", "a'''"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all[4].stamp != 10 || all[5].stamp != 40 {
		t.Errorf("entries of one version are not in the order of their times: %d, %d", all[4].stamp, all[5].stamp)
	}
}

// TestChunks: no chunk has more entries or bytes than an item takes, or lies in two segments; together
// they are all entries.
func TestChunks(t *testing.T) {
	for head, sizes := range map[link.Sequence][]int{
		0:              {98, 98, 54},
		segment - 10:   {9, 98, 98, 45},
		segment:        {98, 98, 54},
		5*segment - 98: {97, 98, 55},
	} {
		all := make([]waiting, 250)
		var got []int
		for c := range chunks(all, head) {
			got = append(got, len(c))
		}
		if diff := cmp.Diff(sizes, got); diff != "" {
			t.Errorf("behind %d (-want +got):\n%s", head, diff)
		}
	}
	big := make([]waiting, 5)
	for i := range big {
		big[i].text = strings.Repeat("x", chunkBytes/2+i)
	}
	n := 0
	for c := range chunks(big, 0) {
		if n += len(c); len(c) != 1 {
			t.Errorf("%d large entries in one chunk", len(c))
		}
	}
	if n != len(big) {
		t.Errorf("%d of %d entries", n, len(big))
	}
}
