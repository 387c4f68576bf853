package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/fill"
	"curt/bench/internal/process"
	"curt/bench/internal/traffic"
)

// prepare makes a key of the store's workspace and walks to pages far down.
func (a *store) prepare(ctx context.Context) (err error) {
	answer, status, err := a.call(ctx, http.MethodPost, "/api/v1/keys", []byte(`{"name":"bench","scopes":["links:read","stats:read"]}`))
	if err != nil {
		return err
	}
	var made struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || made.Key == "" {
		return fmt.Errorf("make a key: status %d: %s", status, answer)
	}
	a.key = made.Key
	if a.deep, err = a.walk(ctx, "?limit=100", 300); err != nil {
		return err
	}
	a.common, err = a.walk(ctx, "?limit=100&q=sale", 100)
	return err
}

// walk returns the cursors of the second half of some pages, or of fewer where there
// are not so many.
func (a *store) walk(ctx context.Context, query string, pages int) (cursors []string, err error) {
	next := ""
	for range pages {
		page, status, err := a.page(ctx, query+next)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK {
			return nil, fmt.Errorf("walk %s: status %d", query, status)
		}
		if page.Next == "" {
			break
		}
		next = "&cursor=" + url.QueryEscape(page.Next)
		cursors = append(cursors, next)
	}
	if len(cursors) < 2 {
		return nil, fmt.Errorf("walk %s: %d pages", query, len(cursors))
	}
	return cursors[len(cursors)/2:], nil
}

func healthz(s *process.Server) func(int) ([]byte, func(int, []byte) bool) {
	request := figures.Get(s, "/healthz", figures.AdminKey)
	return func(int) ([]byte, func(int, []byte) bool) { return request, ok }
}

func ok(status int, _ []byte) bool { return status == http.StatusOK }

// some also wants a link in the page.
func some(status int, body []byte) bool {
	return status == http.StatusOK && bytes.Contains(body, []byte(`"short_code"`))
}

// part wants a link in the page, or a page that goes on: on a store that was created on
// since its fill, the newest links are all of one kind.
func part(status int, body []byte) bool {
	return some(status, body) || ok(status, body) && bytes.Contains(body, []byte(`"next_cursor"`))
}

// list asks for lists whose query may differ each time.
func (a *store) list(name string, right func(int, []byte) bool, query func(r *rand.Rand) string) question {
	return a.listAs(figures.AdminKey, name, right, query)
}

func (a *store) listAs(key, name string, right func(int, []byte) bool, query func(r *rand.Rand) string) question {
	return question{name: name, bar: readBar, next: func(int) ([]byte, func(int, []byte) bool) {
		return figures.Get(a.server, "/api/v1/links"+query(random()), key), right
	}}
}

func random() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), 1)) }

func oneOf(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }

func fixed(query string) func(*rand.Rand) string { return func(*rand.Rand) string { return query } }

// phrases are the words of addresses; each is in about one link in six.
func phrases() []string {
	return strings.Fields("autumn release getting annual team product customer measure open weekly field size road summer travel price")
}

// lists are the lists and searches, as the admin key asks them and some as the key
// of a workspace does, which has one more condition that all links meet.
func (a *store) lists() []question {
	two := func(r *rand.Rand) string {
		return "?q=" + oneOf(r, phrases()...) + "+" + oneOf(r, phrases()...)
	}
	ten := func(r *rand.Rand) string {
		var letters []string
		for _, i := range r.Perm(26)[:10] {
			letters = append(letters, string(rune('a'+i)))
		}
		return "?q=" + strings.Join(letters, "+")
	}
	common := func(r *rand.Rand) string { return "?q=" + oneOf(r, append(phrases(), "www", "sale", "com")...) }
	letter := func(r *rand.Rand) string { return "?q=" + string(rune('a'+r.IntN(26))) }
	rare := func(r *rand.Rand) string { return "?q=" + a.Rare(r.IntN(a.Count())) }
	return []question{
		a.list("list, first page", some, fixed("?limit=50")),
		a.list("list, a page far down", some, func(r *rand.Rand) string { return "?limit=100" + oneOf(r, a.deep...) }),
		a.list("list by status", part, func(r *rand.Rand) string { return "?status=" + oneOf(r, "active", "disabled") }),
		a.list("list by domain", part, func(r *rand.Rand) string { return "?domain=" + fill.OtherDomain }),
		a.list("list by status, oldest first", some, fixed("?status=disabled&sort=created_at")),
		a.list("list by a domain and a status that no link has together", ok, fixed("?status=disabled&domain="+fill.OtherDomain)),
		a.list("list by tag", ok, func(r *rand.Rand) string {
			return "?tag=" + oneOf(r, fill.CommonTag, fill.Tag(r.IntN(fill.Tags)), fill.Tag(r.IntN(20)))
		}),
		a.list("search, a rare word", some, rare),
		a.list("search, a common word", some, common),
		a.list("search, a common word, a page far down", some, func(r *rand.Rand) string { return "?limit=100&q=sale" + oneOf(r, a.common...) }),
		a.list("search, two words", ok, two),
		a.list("search, a word of titles", ok, func(r *rand.Rand) string { return "?q=" + fill.Word(r.IntN(fill.Words)) }),
		a.list("search, one letter", ok, letter),
		a.list("search, ten letters", ok, ten),
		a.list("search, no such word", ok, func(r *rand.Rand) string { return "?q=qqq" + strconv.Itoa(r.IntN(1e9)) }),
		a.list("list by state", ok, func(r *rand.Rand) string { return "?state=" + oneOf(r, "live", "expired", "disabled", "not_yet") }),
		a.list("list by a state that many may have and none has", ok, fixed("?state=exhausted")),
		a.list("search, two words and a state", ok, func(r *rand.Rand) string { return two(r) + "&state=live" }),
		a.list("list by clicks", some, fixed("?sort=-clicks")),
		a.list("list by clicks, with a tag", ok, func(r *rand.Rand) string { return "?sort=-clicks&tag=" + fill.Tag(r.IntN(fill.Tags)) }),
		a.list("list by clicks, with a common word", ok, func(r *rand.Rand) string { return common(r) + "&sort=-clicks" }),
		a.listAs(a.key, "list, first page, key of a workspace", some, fixed("?limit=50")),
		a.listAs(a.key, "search, two words, key of a workspace", ok, two),
		a.listAs(a.key, "search, ten letters, key of a workspace", ok, ten),
		a.listAs(a.key, "list by clicks, key of a workspace", some, fixed("?sort=-clicks")),
	}
}

// statistics are questions about the link with ten million clicks.
func (a *store) statistics() []question {
	day := func(back int) string {
		return time.Now().UTC().AddDate(0, 0, -back).Format(time.DateOnly) + "T00:00:00Z"
	}
	zones := []string{"Asia/Kolkata", "America/New_York", "Europe/Berlin", "Australia/Sydney", "America/St_Johns"}
	stats := func(name string, query func(r *rand.Rand) string) question {
		return question{
			name: fmt.Sprintf("statistics of %.1f million clicks, %s", float64(fill.HotClicks)/1e6, name), bar: readBar,
			next: func(int) ([]byte, func(int, []byte) bool) {
				return figures.Get(a.server, "/api/v1/links/"+string(a.Hot)+"/stats"+query(random()), a.key), counted
			},
		}
	}
	month := func(r *rand.Rand) string { back := r.IntN(300); return "?from=" + day(back+31) + "&to=" + day(back+1) }
	year := func(r *rand.Rand) string { return "?from=" + day(365-r.IntN(20)) }
	const four = "&dimensions=country,city,referrer_host,browser"
	return []question{
		stats("default", fixed("")),
		stats("30 days", month),
		stats("30 days in a zone", func(r *rand.Rand) string { return month(r) + "&tz=" + oneOf(r, zones...) }),
		stats("a year", year),
		stats("a year in a zone", func(r *rand.Rand) string { return year(r) + "&tz=" + oneOf(r, zones...) }),
		stats("30 days, 4 dimensions", func(r *rand.Rand) string { return month(r) + four }),
		stats("a year, 4 dimensions", func(r *rand.Rand) string { return year(r) + four }),
		stats("a year in a zone, 4 dimensions", func(r *rand.Rand) string { return year(r) + "&tz=" + oneOf(r, zones...) + four }),
	}
}

// counted wants the total that the fill wrote.
func counted(status int, body []byte) bool {
	return status == http.StatusOK && bytes.Contains(body, []byte(`"total_clicks":`+strconv.Itoa(fill.HotClicks)))
}

// writes are the questions that may store.
func (a *store) writes() []question {
	urls := traffic.NewURLs()
	dedupe := func(s string) []byte {
		return figures.Post(a.server, "/api/v1/links", []byte(`{"long_url":"`+s+`","dedupe":true}`))
	}
	return []question{
		{name: "dedupe, found", bar: dedupeBar, next: func(int) ([]byte, func(int, []byte) bool) {
			i := rand.IntN(a.Count())
			for !a.Plain(i) {
				i = rand.IntN(a.Count())
			}
			return dedupe(a.URL(i)), ok
		}},
		{name: "dedupe, new and durable", bar: dedupeBar, next: func(int) ([]byte, func(int, []byte) bool) {
			return dedupe(string(urls.Append(nil, rand.Uint64N(1<<40)))), created
		}},
		bulk(a.server),
	}
}

func created(status int, _ []byte) bool { return status == http.StatusCreated }

// bulk makes 1,000 links at once.
func bulk(s *process.Server) question {
	urls := traffic.NewURLs()
	return question{name: "bulk of 1,000", bar: bulkBar, alone: true, n: bulkRequests, next: func(int) ([]byte, func(int, []byte) bool) {
		body, index := []byte(`{"links":[`), rand.Uint64N(1<<40)
		for i := range uint64(1000) {
			body = append(urls.Append(append(body, `{"long_url":"`...), index+i), `"},`...)
		}
		body = append(body[:len(body)-1], `]}`...)
		return figures.Post(s, "/api/v1/links/bulk", body), func(status int, answer []byte) bool {
			return status == http.StatusMultiStatus && bytes.Count(answer, []byte(`"status":201`)) == 1000
		}
	}}
}
