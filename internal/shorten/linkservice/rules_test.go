package linkservice_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/shorten"
)

// badFields lists, by field, what is refused on create and on change alike.
func badFields() map[string][]shorten.Fields {
	var tags33 []string
	for i := range 33 {
		tags33 = append(tags33, strconv.Itoa(i))
	}
	urls := func(set func(*shorten.Fields, string)) (bad []shorten.Fields) {
		for _, raw := range []string{
			"", " ", "example.com", "//example.com", "/path", "javascript:alert(1)", "java\tscript:alert(1)", "\x01javascript:alert(1)",
			"data:text/html,x", "vbscript:x", "file:///etc/passwd", "ftp://example.com/", "mailto:a@b.c", "https://", "http://\x00",
			"http://user@example.com/", "http://user:pw@example.com/", "http://exa mple.com/", "http://[::1", "http://example.com:99999/",
			"https://curt.test/x", "https://CURT.test./x", "https://curt.test:8443/", "http://go.example/abc", "http://\xff\xfe.com/",
			"http://example.com/" + strings.Repeat("a", link.MaxDestination),
			"http://example.com/" + strings.Repeat("ä", link.MaxDestination/3), // too long once escaped
		} {
			var f shorten.Fields
			set(&f, raw)
			bad = append(bad, f)
		}
		return bad
	}
	at := shorten.Value[time.Time]
	return map[string][]shorten.Fields{
		"long_url": append(urls(func(f *shorten.Fields, raw string) { f.LongURL = shorten.Value(raw) }),
			shorten.Fields{LongURL: shorten.Null[string]()}),
		"fallback_url": urls(func(f *shorten.Fields, raw string) { f.Fallback = shorten.Value(raw) }),
		"expires_at": {
			{ExpiresAt: at(noon())},
			{ExpiresAt: at(noon().Add(-time.Millisecond))},
			{ExpiresAt: at(time.Time{})},
			{ExpiresAt: at(noon().Add(999 * time.Microsecond))},
			{ExpiresAt: at(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))},
		},
		"expires_in": {
			{ExpiresIn: shorten.Value[int64](0)},
			{ExpiresIn: shorten.Value[int64](-1)},
			{ExpiresIn: shorten.Value[int64](3653*86400 + 1)},
			{ExpiresIn: shorten.Value[int64](1 << 62)},
			{ExpiresIn: shorten.Value[int64](1), ExpiresAt: at(noon().Add(time.Hour))},
		},
		"starts_at": {
			{StartsAt: at(time.Time{})},
			{StartsAt: at(time.UnixMilli(0))},
			{StartsAt: at(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))},
			{StartsAt: at(noon().Add(time.Hour)), ExpiresAt: at(noon().Add(time.Hour))},
			{StartsAt: at(noon().Add(time.Hour)), ExpiresIn: shorten.Value[int64](60)},
		},
		"redirect_status": {
			{Redirect: shorten.Value[int64](0)},
			{Redirect: shorten.Value[int64](200)},
			{Redirect: shorten.Value[int64](303)},
			{Redirect: shorten.Value[int64](-302)},
			{Redirect: shorten.Value[int64](302 + 1<<16)},
		},
		"title": {
			{Title: shorten.Value(strings.Repeat("a", link.MaxTitle+1))},
			{Title: shorten.Value("a\nb")},
			{Title: shorten.Value("\x00")},
			{Title: shorten.Value("\u0085")},
			{Title: shorten.Value("\u2028")},
			{Title: shorten.Value("\xff")},
			{Title: shorten.Value("\x7f")},
		},
		"tags": {
			{Tags: shorten.Value([]string{""})},
			{Tags: shorten.Value([]string{"a", "a"})},
			{Tags: shorten.Value(tags33)},
			{Tags: shorten.Value([]string{strings.Repeat("a", link.MaxTag+1)})},
			{Tags: shorten.Value([]string{"a\r\n"})},
		},
		"max_clicks": {
			{MaxClicks: shorten.Value[int64](0)}, {MaxClicks: shorten.Value[int64](-1)}, {MaxClicks: shorten.Value[int64](1 << 53)},
		},
		"cacheable": {
			{Cacheable: shorten.Value(true), MaxClicks: shorten.Value[int64](1)},
			{Cacheable: shorten.Value(true), ForwardQuery: shorten.Value(true)},
		},
	}
}

func wantInvalid(t *testing.T, err error, field string, asked any) {
	t.Helper()
	var invalid *shorten.InvalidError
	if !errors.As(err, &invalid) || !errors.Is(err, link.ErrInvalid) {
		t.Errorf("%.200v: got %v, want an InvalidError", asked, err)
		return
	}
	if invalid.Field != field || invalid.PublicMessage() == "" {
		t.Errorf("%.200v: blames %q (%s), want %q", asked, invalid.Field, invalid.PublicMessage(), field)
	}
}

func TestBadFieldsAreRefusedOnCreate(t *testing.T) {
	b := newBench(t)
	for field, cases := range badFields() {
		for _, f := range cases {
			if !f.LongURL.Given {
				f.LongURL = shorten.Value("http://example.com")
			}
			_, err := b.created(t.Context(), noon(), by(admin()), &shorten.Request{Fields: f})
			wantInvalid(t, err, field, f)
		}
	}
	_, err := b.created(t.Context(), noon(), by(admin()), &shorten.Request{})
	wantInvalid(t, err, "long_url", "nothing")
	if b.stored(t) != 0 || b.codes.made != 0 {
		t.Errorf("%d links stored and %d codes made for bad requests", b.stored(t), b.codes.made)
	}
}

func TestBadFieldsAreRefusedOnChange(t *testing.T) {
	b := newBench(t)
	before := b.mustCreate(t, admin(), to("http://example.com"))
	for field, cases := range badFields() {
		for _, f := range cases {
			_, err := b.Update(t.Context(), noon(), by(admin()), before.Key, shorten.Match{}, &shorten.Change{Fields: f})
			wantInvalid(t, err, field, f)
		}
	}
	for _, s := range []shorten.Field[link.Status]{shorten.Null[link.Status](), shorten.Value(link.Deleted), shorten.Value(link.Status(9))} {
		_, err := b.Update(t.Context(), noon(), by(admin()), before.Key, shorten.Match{}, &shorten.Change{Status: s})
		wantInvalid(t, err, "status", s)
	}
	after, err := b.Get(t.Context(), admin(), before.Key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" || len(*b.announced) != 0 {
		t.Errorf("a refused change left traces (%d announced):\n%s", len(*b.announced), diff)
	}
}

func TestExtremesAreAccepted(t *testing.T) {
	b := newBench(t)
	long := "http://example.com/" + strings.Repeat("a", link.MaxDestination-len("http://example.com/"))
	var tags []string
	for i := range link.MaxTags {
		tags = append(tags, strings.Repeat("ü", 15)+strconv.Itoa(i)+strings.Repeat("x", link.MaxTag-30-len(strconv.Itoa(i))))
	}
	for _, f := range []shorten.Fields{
		{LongURL: shorten.Value(long), Fallback: shorten.Value(long)},
		{Title: shorten.Value(strings.Repeat("ü", link.MaxTitle/2)), Tags: shorten.Value(tags)},
		{ExpiresIn: shorten.Value[int64](1)},
		{ExpiresIn: shorten.Value[int64](3653 * 86400)},
		{ExpiresAt: shorten.Value(noon().Add(time.Millisecond))},
		{ExpiresAt: shorten.Value(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))},
		{StartsAt: shorten.Value(time.UnixMilli(1)), ExpiresIn: shorten.Value[int64](1)},
		{MaxClicks: shorten.Value[int64](1<<53 - 1)},
		{Tags: shorten.Value([]string{})},
		{Cacheable: shorten.Value(true)},
		{LongURL: shorten.Value("http://xn--bcher-kva.example/?q=%F0%9F%92%A9#frag")},
	} {
		if !f.LongURL.Given {
			f.LongURL = shorten.Value("http://example.com")
		}
		if _, err := b.created(t.Context(), noon(), by(admin()), &shorten.Request{Fields: f}); err != nil {
			t.Errorf("%.200v: %v", f, err)
		}
	}
}

func TestAliases(t *testing.T) {
	b := newBench(t)
	create := func(alias string) error {
		req := to("http://example.com")
		req.Alias = shorten.Value(alias)
		_, err := b.created(t.Context(), noon(), by(admin()), &req)
		return err
	}
	for _, good := range []string{"abc", "ABC", "a-b", "_-_", "123", strings.Repeat("a", 64), "apis", "well-knowns", "-api"} {
		if err := create(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "a", "ab", strings.Repeat("a", 65), "a b", "a/b", "a.b", "äöü", "abc\x00", "abc\n", "abc%20", "a+b", "../../etc", "аbс", // Cyrillic
	} {
		wantInvalid(t, create(bad), "custom_alias", bad)
	}
	for word := range strings.FieldsSeq(`api app admin login logout signup oauth auth callback report abuse appeal docs
		help about terms privacy status health healthz readyz metrics static assets pages bio mcp bulk links urls shorten rest
		preview well-known robots favicon sitemap`) {
		for _, alias := range []string{word, strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:]} {
			wantError(t, alias, create(alias), shorten.ErrReserved)
		}
	}
	for _, alias := range []string{"adm1n", "ADMlN", "l0gin", "1ogin"} {
		wantError(t, alias, create(alias), shorten.ErrReserved)
	}
	for _, short := range []string{"v1", "v2", "qr", "QR"} { // too short for an alias, kept all the same
		if !shorten.Reserved(short) {
			t.Errorf("%s is not reserved", short)
		}
	}
	wantError(t, "again", create("abc"), shorten.ErrTaken)
}

func TestReservedDoesNotAllocate(t *testing.T) {
	code := link.Code("Well-Known")
	if n := testing.AllocsPerRun(100, func() { shorten.Reserved(code) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestDomains(t *testing.T) {
	b := newBench(t)
	for name, want := range map[string]link.Domain{"curt.test": "", "CURT.TEST": "", "go.example": "go.example", "Go.Example": "go.example", "": ""} {
		req := to("http://example.com")
		req.Domain = shorten.Value(name)
		l, err := b.created(t.Context(), noon(), by(admin()), &req)
		if err != nil || l.Key.Domain != want {
			t.Errorf("%q: got %q, %v; want %q", name, l.Key.Domain, err, want)
		}
	}
	for _, name := range []string{"other.example", "go.example.", "go.example:80", " go.example", "go.example\x00", "*"} {
		req := to("http://example.com")
		req.Domain = shorten.Value(name)
		_, err := b.created(t.Context(), noon(), by(admin()), &req)
		wantInvalid(t, err, "domain", name)
	}
}
