package curttest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// auth is the header line that makes a request the admin's.
const auth = "Authorization: Bearer " + Key

// Link is the part of a link's JSON that the fault tests compare.
type Link struct {
	Code    string `json:"short_code"`
	LongURL string `json:"long_url"`
	Version uint64 `json:"version"`

	At time.Time `json:"-"` // when its 201 was read; set by Creators
}

// Stats is the part of a link's statistics that tests count with.
type Stats struct {
	Total    int64 `json:"total_clicks"`
	Humans   int64 `json:"human_clicks"`
	Bots     int64 `json:"bot_clicks"`
	Previews int64 `json:"previews"`
	Day      int64 `json:"clicks_24h"`
	Series   []struct {
		Start  time.Time `json:"start"`
		Clicks int64     `json:"clicks"`
	} `json:"series"`
}

// Create makes a link, also where one that does the same is there. The answer is
// returned as it came; the link is filled only after 201.
func (c *Conn) Create(longURL string) (Link, Answer, error) {
	body, err := json.Marshal(map[string]any{"long_url": longURL, "dedupe": false})
	if err != nil {
		return Link{}, Answer{}, fmt.Errorf("encode: %w", err)
	}
	a, err := c.Do("POST", "/api/v1/links", []string{auth, "Content-Type: application/json"}, string(body))
	if err != nil || a.Status != http.StatusCreated {
		return Link{}, a, err
	}
	var l Link
	if err := json.Unmarshal(a.Body, &l); err != nil || l.Code == "" {
		return Link{}, a, fmt.Errorf("201 without a link: %q", a.Body)
	}
	return l, a, nil
}

// GetJSON asks an API path as the admin and decodes a 200 into out.
func (c *Conn) GetJSON(target string, out any) error {
	a, err := c.Do("GET", target, []string{auth}, "")
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("GET %s: %d %s", target, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		return fmt.Errorf("GET %s: %w", target, err)
	}
	return nil
}

// Stats asks for a link's statistics.
func (c *Conn) Stats(code string) (Stats, error) {
	var s Stats
	err := c.GetJSON("/api/v1/links/"+code+"/stats", &s)
	return s, err
}

// MustDial connects to the server or fails the test; the connection ends with it.
func (s *Server) MustDial(t testing.TB) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// MustCreate makes n links with distinct destinations or fails the test.
func (s *Server) MustCreate(t testing.TB, n int) []Link {
	t.Helper()
	c := s.MustDial(t)
	links := make([]Link, n)
	for i := range links {
		l, a, err := c.Create(fmt.Sprintf("https://example.com/%s/%d", t.Name(), i))
		if err != nil || a.Status != http.StatusCreated {
			t.Fatalf("create: %d %s %v", a.Status, a.Body, err)
		}
		links[i] = l
	}
	return links
}

// Total returns the sum of the links' total_clicks.
func (s *Server) Total(t testing.TB, links []Link) int64 {
	t.Helper()
	c := s.MustDial(t)
	var sum int64
	for _, l := range links {
		st, err := c.Stats(l.Code)
		if err != nil {
			t.Fatalf("statistics: %v", err)
		}
		sum += st.Total
	}
	return sum
}

// AwaitTotal polls the sum of the links' total_clicks until it is want, or the
// bound has passed, and returns the last sum seen.
func (s *Server) AwaitTotal(t testing.TB, links []Link, want int64, bound time.Duration) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	for {
		got := s.Total(t, links)
		if got == want {
			return got
		}
		select {
		case <-ctx.Done():
			return got
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// AllLinks walks the list of links from its start to its end.
func (s *Server) AllLinks(t testing.TB) []Link {
	t.Helper()
	c := s.MustDial(t)
	var all []Link
	target := "/api/v1/links?limit=100"
	for {
		var page struct {
			Links []Link `json:"links"`
			Next  string `json:"next_cursor"`
		}
		if err := c.GetJSON(target, &page); err != nil {
			t.Fatalf("list: %v", err)
		}
		all = append(all, page.Links...)
		if page.Next == "" {
			return all
		}
		target = "/api/v1/links?limit=100&cursor=" + url.QueryEscape(page.Next)
	}
}
