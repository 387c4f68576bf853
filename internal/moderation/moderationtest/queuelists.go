package moderationtest

import (
	"slices"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

// walk returns the numbers of the links of a whole walk, in its order.
func walk(t *testing.T, q Queue, f moderation.CaseFilter, limit int) (found []int) {
	t.Helper()
	p := moderation.CasePage{Limit: limit}
	for range 100 {
		page, next, err := q.List(t.Context(), f, p)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit {
			t.Fatalf("a page of %d, want %d at most", len(page), limit)
		}
		for _, c := range page {
			found = append(found, int(c.Link.ID[5])<<8|int(c.Link.ID[7]))
		}
		if next == (moderation.CasePosition{}) {
			return found
		}
		p.After = next
	}
	t.Fatal("a walk without an end")
	return nil
}

func walks(t *testing.T, q Queue) {
	// Cases 0 to 9; scores in pairs; 7 is reported three times, 4 twice; 8 and 2 appeal.
	for n := range 10 {
		follow(t, q, uint64(n), decided(n, 50+n/2))
	}
	for _, n := range []int{7, 4, 7, 4, 7} {
		report(t, q, n, 1)
	}
	for _, n := range []int{8, 2} {
		must(t)(q.Open(t.Context(), appeal(n), opening(n, moderation.FromAppeal, 0)))
	}
	for order, want := range map[moderation.CaseOrder][]int{
		moderation.ByDue:     {2, 8, 0, 1, 3, 4, 5, 6, 7, 9},
		moderation.ByScore:   {8, 9, 6, 7, 4, 5, 2, 3, 0, 1},
		moderation.ByReports: {7, 4, 0, 1, 2, 3, 5, 6, 8, 9},
		moderation.ByNewest:  {9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
	} {
		for _, limit := range []int{1, 3, 10, 100} {
			if got := walk(t, q, moderation.CaseFilter{Order: order}, limit); !slices.Equal(got, want) {
				t.Errorf("order %d by %d: %v, want %v", order, limit, got, want)
			}
		}
	}
	// What is closed leaves the walk, and those behind it stay.
	page, next, err := q.List(t.Context(), moderation.CaseFilter{}, moderation.CasePage{Limit: 4})
	if err != nil || len(page) != 4 {
		t.Fatalf("%v, %v", page, err)
	}
	must(t)(q.Close(t.Context(), closing(1, 20)))
	must(t)(q.Close(t.Context(), closing(4, 21)))
	page, _, err = q.List(t.Context(), moderation.CaseFilter{}, moderation.CasePage{After: next, Limit: 1})
	if err != nil || len(page) != 1 || page[0].Link != ref(3) && page[0].Link != ref(5) {
		t.Errorf("behind 1 comes %+v, %v", page, err)
	}
	if got := walk(t, q, moderation.CaseFilter{Closed: true, Order: moderation.ByNewest}, 1); !slices.Equal(got, []int{4, 1}) {
		t.Errorf("closed: %v", got)
	}
}

func filters(t *testing.T, q Queue) {
	for n := range 6 {
		o := opening(n, moderation.FromPolicy, 10*n)
		if n%2 == 1 {
			o.Facts = moderation.Facts{Workspace: "rival", Host: "other.example"}
		}
		follow(t, q, uint64(n), moderation.Step{Open: &o})
	}
	spam, malware := moderation.Spam, moderation.Malware
	r := moderation.Report{Opening: opening(3, moderation.FromReport, 0), Category: spam}
	if _, _, err := q.Report(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	must(t)(q.Open(t.Context(), appeal(4), opening(4, moderation.FromAppeal, 0)))
	must(t)(q.Close(t.Context(), moderation.Closing{Link: ref(5), Sequence: 9, At: noon().Add(time.Hour), By: "mod", Safety: link.Clean}))
	for name, c := range map[string]struct {
		f    moderation.CaseFilter
		want []int
	}{
		"closed":    {moderation.CaseFilter{Closed: true}, []int{5}},
		"reported":  {moderation.CaseFilter{Source: moderation.FromReport}, []int{3}},
		"appealed":  {moderation.CaseFilter{Source: moderation.FromAppeal}, []int{4}},
		"category":  {moderation.CaseFilter{Category: &spam}, []int{3}},
		"another":   {moderation.CaseFilter{Category: &malware}, nil},
		"score":     {moderation.CaseFilter{MinScore: 20}, []int{4, 2, 3}},
		"host":      {moderation.CaseFilter{Host: "other.example"}, []int{1, 3}},
		"workspace": {moderation.CaseFilter{Workspace: "acme"}, []int{4, 0, 2}},
		"overdue":   {moderation.CaseFilter{DueBefore: opening(2, 0, 0).Due}, []int{0, 1}},
		"all":       {moderation.CaseFilter{Host: "other.example", Source: moderation.FromPolicy, MinScore: 30, Category: &spam}, []int{3}},
	} {
		if got := walk(t, q, c.f, 2); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
