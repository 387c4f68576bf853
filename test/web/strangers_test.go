package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestStrangersInABrowser looks at the pages of reports and appeals and at those that lead
// to them, with all that strangers choose as hostile as it gets: destination, title,
// report, reason, and the answer of a moderator who quotes them. No script runs, nothing
// is asked for from elsewhere, and the policy has nothing to report.
func TestStrangersInABrowser(t *testing.T) {
	testkit.Faults(t)
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_LIMITS=anonymous=off", "CURT_REPORT_LIMIT=off", "CURT_APPEAL_LIMIT=off"}})
	_, port, _ := strings.Cut(s.Addr, ":")
	base := "http://localhost:" + port
	tokens := map[string]string{}
	for _, l := range []struct{ alias, safety string }{{"warned", "warn"}, {"blocked", "blocked"}, {"open", "quarantined"}} {
		text, err := json.Marshal(map[string]string{"long_url": "https://example.com/" + hostile, "custom_alias": l.alias, "title": hostile})
		if err != nil {
			t.Fatal(err)
		}
		call(t, s, "", "/api/v1/links", string(text), http.StatusCreated)
		call(t, s, "", "/api/v1/reports", object("code", l.alias, "category", "phishing", "text", hostile), http.StatusAccepted)
		decisions := `{"decisions":[` + object("code", l.alias, "safety", l.safety, "reason", "as reported") + `]}`
		call(t, s, curttest.Key, "/api/v1/reviews/decisions", decisions, http.StatusMultiStatus)
		var made struct{ Token string }
		if err := json.Unmarshal(call(t, s, "", "/api/v1/appeals", object("code", l.alias, "reason", hostile), http.StatusAccepted), &made); err != nil {
			t.Fatal(err)
		}
		tokens[l.alias] = made.Token
	}
	answer := object("safety", "warn", "answer", strings.ReplaceAll(hostile, "\u202E", "")+"\nas you say")
	call(t, s, curttest.Key, "/api/v1/reviews/warned/answer", answer, http.StatusOK)
	looks := []look{
		{Name: "report", URL: base + "/report?code=warned", Title: "Report a link"},
		{Name: "reported", URL: base + "/report", Title: "Thank you", Fill: map[string]string{"link": "warned", "category": "spam", "text": hostile}},
		{Name: "report of nothing", URL: base + "/report", Title: "Error: ", Fill: map[string]string{"link": hostile, "category": "spam", "text": hostile}},
		{Name: "appeal", URL: base + "/appeal", Title: "Appeal a decision"},
		{Name: "appeal for nothing", URL: base + "/appeal", Title: "Error: ", Fill: map[string]string{"link": hostile, "reason": hostile}},
		{Name: "second appeal", URL: base + "/appeal", Title: "Error: ", Fill: map[string]string{"link": "open", "reason": hostile}},
		{Name: "open appeal", URL: base + "/appeal?token=" + tokens["open"], Title: "Your appeal"},
		{Name: "answered appeal", URL: base + "/appeal?token=" + tokens["warned"], Title: "Your appeal"},
		{Name: "no appeal", URL: base + "/appeal?token=" + url.QueryEscape(hostile), Title: "Appeal not found"},
		{Name: "warning", URL: base + "/warned", Title: "This link may be harmful"},
		{Name: "preview with a warning", URL: base + "/warned+", Title: "This link may be harmful"},
		{Name: "blocked", URL: base + "/blocked", Title: "Link blocked"},
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "arrived") }))
	defer elsewhere.Close()
	browse(t, plan{Elsewhere: elsewhere.Listener.Addr().String(), Looks: looks}).clean(t, len(looks), 0)
}

// call sends a request of the API and returns its answer.
func call(t *testing.T, s *curttest.Server, key, path, body string, status int) []byte {
	t.Helper()
	headers := []string{"Content-Type: application/json"}
	if key != "" {
		headers = append(headers, "Authorization: Bearer "+key)
	}
	a, err := s.MustDial(t).Do("POST", path, headers, body)
	if err != nil || a.Status != status {
		t.Fatalf("%s %s: %d %s %v", path, body, a.Status, a.Body, err)
	}
	return a.Body
}

// object writes an object of texts.
func object(pairs ...string) string {
	members := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		members[pairs[i]] = pairs[i+1]
	}
	text, err := json.Marshal(members)
	if err != nil {
		return "{}"
	}
	return string(text)
}
