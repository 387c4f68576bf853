package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"curt/internal/redirect"
	"curt/internal/testkit"
	"curt/internal/web"
	"curt/test/internal/browser"
	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// plan is what check.mjs is told to do.
type plan struct {
	Program    string      `json:"program"`
	All        bool        `json:"all"`                // both lights in both sizes, else each once
	Elsewhere  string      `json:"elsewhere"`          // the address that example.com has
	Pictures   string      `json:"pictures,omitempty"` // a folder for screenshots
	Looks      []look      `json:"looks"`
	Cookie     *cookie     `json:"cookie,omitempty"`
	Form       *form       `json:"form,omitempty"`
	Statistics *statistics `json:"statistics,omitempty"`
}

// look is a page to judge, perhaps after its form was filled and sent.
type look struct {
	Name  string            `json:"name"`
	URL   string            `json:"url"`
	Title string            `json:"title,omitempty"` // what the title holds
	Fill  map[string]string `json:"fill,omitempty"`
}

type cookie struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Domain string `json:"domain"`
	Path   string `json:"path"`
}

// form is what a person does at home.
type form struct {
	URL   string `json:"url"`
	Long  string `json:"long"`
	Taken string `json:"taken"`
	Alias string `json:"alias"`
	Short string `json:"short"`
}

type statistics struct {
	URL string `json:"url"`
	Key string `json:"key"`
}

// report is what check.mjs found.
type report struct {
	Faults []string `json:"faults"`
	Looked int      `json:"looked"`
	Done   []string `json:"done"`
}

// ways is in how many ways each page is judged: light as on a phone, dark as on a desk,
// and in the long form the other way round, too.
func ways() int {
	if curttest.Long() {
		return 4
	}
	return 2
}

// browse runs the plan in Chromium.
func browse(t *testing.T, p plan) report {
	t.Helper()
	p.Program, p.Pictures, p.All = browser.Program(t), browser.Pictures(), curttest.Long()
	var r report
	browser.Run(t, "check.mjs", p, &r)
	return r
}

func (r report) clean(t *testing.T, looks, flows int) {
	t.Helper()
	for _, f := range r.Faults {
		t.Error(f)
	}
	if r.Looked != looks*ways() || len(r.Done) != flows {
		t.Errorf("%d pages were judged, want %d; done: %q", r.Looked, looks*ways(), r.Done)
	}
}

// hostile is what a stranger may leave in the statistics of a link.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>` + "\u202Egpj.exe"

// TestPagesInABrowser looks at every page of a server, and makes a link and reads its
// statistics without a pointer and without scripts.
func TestPagesInABrowser(t *testing.T) {
	testkit.Faults(t)
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_LIMITS=anonymous=off"}})
	_, port, _ := strings.Cut(s.Addr, ":")
	base := "http://localhost:" + port
	taken := create(t, s, `{"long_url":"https://example.com/taken","custom_alias":"taken","title":"Spring sale <b>`+"\u202E"+`"}`)
	create(t, s, `{"long_url":"https://xn--80ak6aa92e.com/login","custom_alias":"idn"}`)
	create(t, s, `{"long_url":"https://example.com/","custom_alias":"over","max_clicks":1}`)
	create(t, s, `{"long_url":"https://example.com/`+strings.Repeat("long", 500)+`","custom_alias":"long"}`)
	click(t, s, "taken")
	if got := s.AwaitTotal(t, []curttest.Link{{Code: "taken"}}, 12, 3*time.Minute); got != 12 {
		t.Fatalf("%d clicks are counted", got)
	}
	looks := []look{
		{Name: "home", URL: base + "/", Title: "Shorten a link"},
		{Name: "made", URL: base + "/", Title: "Your short link", Fill: map[string]string{"url": "https://bücher.example/a?b=c"}},
		{Name: "mistake", URL: base + "/", Title: "Error: ", Fill: map[string]string{"url": "https://example.com/", "alias": "taken"}},
		{Name: "preview", URL: base + "/taken+", Title: "Link preview"},
		{Name: "preview of another alphabet", URL: base + "/idn+"},
		{Name: "preview of a long address", URL: base + "/long+"},
		{Name: "unknown", URL: base + "/nobody", Title: "Link not found"},
		{Name: "key", URL: base + "/idn/stats", Title: "Statistics of idn"},
		{Name: "statistics", URL: base + "/taken/stats", Title: "Statistics of taken"},
		{Name: "shared", URL: share(t, s, taken.Code) + "&range=48h", Title: "Statistics of taken"},
		{Name: "the API", URL: base + "/api/docs", Title: "curt API"},
		{Name: "shared no more", URL: base + "/taken/stats?share=x", Title: "Share link expired"},
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "arrived") }))
	defer elsewhere.Close()
	r := browse(t, plan{
		Elsewhere: elsewhere.Listener.Addr().String(), Looks: looks, Cookie: enter(t, base, "/taken/stats"),
		Form:       &form{URL: base + "/", Long: "http://example.com/by-hand", Taken: "taken", Alias: "by-hand", Short: base + "/by-hand"},
		Statistics: &statistics{URL: base + "/taken/stats", Key: curttest.Key},
	})
	r.clean(t, len(looks), 3)
}

// TestProblemsInABrowser looks at the pages of links that lead nowhere.
func TestProblemsInABrowser(t *testing.T) {
	pages, err := web.NewPages()
	if err != nil {
		t.Fatal(err)
	}
	var looks []look
	mux := http.NewServeMux()
	mux.Handle("/static/", pages.Files())
	for _, p := range []redirect.Problem{redirect.Warning, redirect.Expired} {
		mux.HandleFunc("/"+p.Name(), func(w http.ResponseWriter, _ *http.Request) { problem(t, w, pages, p) })
		looks = append(looks, look{Name: p.Name(), Title: p.Title()})
	}
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", pages.Policy())
		_, _ = fmt.Fprint(w, `<title>x</title><style>p{color:#ccc}</style><script>alert(1)</script><p style="color:red">x<input><table width=3000><tr><td>x</table>`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for i := range looks {
		looks[i].URL = server.URL + "/" + looks[i].Name
	}
	elsewhere := server.Listener.Addr().String()
	browse(t, plan{Elsewhere: elsewhere, Looks: looks}).clean(t, len(looks), 0)

	// The control: each kind of fault must be found.
	all := strings.Join(browse(t, plan{Elsewhere: elsewhere, Looks: []look{{Name: "broken", URL: server.URL + "/broken"}}}).Faults, "\n")
	for _, want := range []string{"label:", "html-has-lang:", "landmark-one-main:", "console: ", "pixels too wide", "the ground is"} {
		if !strings.Contains(all, want) {
			t.Errorf("the control has no fault %q:\n%s", want, all)
		}
	}
}

func problem(t *testing.T, w http.ResponseWriter, pages *web.Pages, p redirect.Problem) {
	destination, onward := "", ""
	if p == redirect.Warning {
		destination, onward = "https://xn--80ak6aa92e.com/"+hostile, "/abc?curt_pass=AAAA"
	}
	made, err := pages.Page(p, p.Status(), destination, onward)
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", pages.Policy())
	w.WriteHeader(p.Status())
	_, _ = w.Write(made)
}

func create(t *testing.T, s *curttest.Server, body string) (l curttest.Link) {
	t.Helper()
	a, err := s.MustDial(t).Do("POST", "/api/v1/links", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, body)
	if err != nil || a.Status != http.StatusCreated || json.Unmarshal(a.Body, &l) != nil {
		t.Fatalf("create: %d %s %v", a.Status, a.Body, err)
	}
	return l
}

// click follows a link twelve times, as people and programs do, and leaves behind what
// strangers leave.
func click(t *testing.T, s *curttest.Server, code string) {
	t.Helper()
	c := s.MustDial(t)
	target := "/" + code + "?utm_source=" + url.QueryEscape(hostile) + "&utm_campaign=spring&qr=1"
	for i := range 12 {
		headers := []string{"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36", "Referer: https://social.example/post"}
		if i%3 == 0 {
			headers = []string{"User-Agent: Googlebot/2.1", "Referer: https://a.example/" + strings.ReplaceAll(hostile, "\u202E", "")}
		}
		if a, err := c.Do("GET", target, headers, ""); err != nil || a.Status != http.StatusFound {
			t.Fatalf("click: %d %v", a.Status, err)
		}
	}
}

// share returns the address of a shared page.
func share(t *testing.T, s *curttest.Server, code string) string {
	t.Helper()
	a, err := s.MustDial(t).Do("POST", "/api/v1/links/"+code+"/share", []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, `{"expires_in":600}`)
	var made struct{ URL string }
	if err != nil || a.Status != http.StatusCreated || json.Unmarshal(a.Body, &made) != nil {
		t.Fatalf("share: %d %s %v", a.Status, a.Body, err)
	}
	return made.URL
}

// enter shows the admin key to a page of statistics.
func enter(t *testing.T, base, path string) *cookie {
	t.Helper()
	once := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := once.PostForm(base+path, url.Values{"key": {curttest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if c := resp.Cookies(); resp.StatusCode == http.StatusSeeOther && len(c) == 1 {
		return &cookie{Name: c[0].Name, Value: c[0].Value, Domain: "localhost", Path: path}
	}
	t.Fatalf("enter: %d %v", resp.StatusCode, resp.Header)
	return nil
}
