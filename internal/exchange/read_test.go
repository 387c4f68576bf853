package exchange_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/exchange"
)

// read returns the rows of a file as "line: url code title" or "line! error".
func read(t *testing.T, r exchange.Reader) (rows []string) {
	t.Helper()
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			return append(rows, "stop: "+err.Error())
		}
		if row.Err != nil {
			rows = append(rows, fmt.Sprintf("%d! %v", row.Line, row.Err))
			continue
		}
		rows = append(rows, strings.TrimSpace(fmt.Sprintf("%d: %s %s %s", row.Line, row.Record.LongURL, row.Record.Code, row.Record.Title)))
	}
}

func readCSV(t *testing.T, text string, chosen map[string]string) []string {
	t.Helper()
	r, err := exchange.NewCSV(strings.NewReader(text), 0, chosen)
	if err != nil {
		return []string{"stop: " + err.Error()}
	}
	return read(t, r)
}

// The columns of other shorteners' exports are known by their names.
func TestColumnsOfOtherShorteners(t *testing.T) {
	for name, text := range map[string]string{
		"Bitly":      "\"link\",\"long_url\",\"title\",\"created_at\",\"custom_bitlinks\",\"tags\"\nhttps://bit.ly/3abcdef,https://example.com/,T,2024-01-02,\"[\"\"https://bit.ly/abc\"\"]\",\n",
		"YOURLS":     "keyword,url,title,timestamp,ip,clicks\nabc,https://example.com/,T,2020-01-01 00:00:00,127.0.0.1,7\n",
		"Kutt":       "Address,Target,Description,Link,Visits\nabc,https://example.com/,T,https://kutt.it/abc,1\n",
		"Shlink":     "\"createdAt\",\"domain\",\"shortCode\",\"shortUrl\",\"longUrl\",\"title\",\"tags\",\"visits\"\n,s.test,abc,https://s.test/abc,https://example.com/,T,a|b,3\n",
		"Shlink in":  "Long URL;Tags;Domain;Short code;Title\nhttps://example.com/;a|b;;abc;T\n",
		"Rebrandly":  "Title,Slashtag,Destination,ShortUrl\nT,abc,https://example.com/,rebrand.ly/abc\n",
		"Short.io":   "originalURL\tpath\ttitle\nhttps://example.com/\tabc\tT\n",
		"Dub":        "domain,key,url,title\ndub.sh,abc,https://example.com/,T\n",
		"short URL":  "Short URL,Long URL,Title\ns.test/abc?x=1,https://example.com/,T\n",
		"by choice":  "from,to,what\nabc,https://example.com/,T\n",
		"no header":  "https://example.com/,abc\n",
		"code first": "abc,https://example.com/\n",
	} {
		chosen := map[string]string{}
		if name == "by choice" {
			chosen = map[string]string{"long_url": "To", "short_code": "from", "title": "what"}
		}
		line, title := 2, " T"
		if name == "no header" || name == "code first" {
			line, title = 1, ""
		}
		want := []string{fmt.Sprintf("%d: https://example.com/ abc%s", line, title)}
		if d := cmp.Diff(want, readCSV(t, text, chosen)); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
	if got := readCSV(t, "a,b\n1,2\n", nil); !strings.Contains(got[0], "--map") {
		t.Errorf("a file without URLs: %q", got)
	}
	if got := readCSV(t, "url\nhttps://a.test\n", map[string]string{"long_url": "nope"}); !strings.Contains(got[0], "no column is named") {
		t.Errorf("a column that is not there: %q", got)
	}
}

// Whatever is wrong with a row is the matter of that row.
func TestHostileCSV(t *testing.T) {
	const head = "url,code,title\n"
	huge := strings.Repeat("a", exchange.MaxRow+1)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"byte order mark":  {"\ufeff" + head + "https://a.test,aaa,A\n", []string{"2: https://a.test aaa A"}},
		"CRLF":             {"url,code\r\nhttps://a.test,aaa\r\n\r\nhttps://b.test,bbb", []string{"2: https://a.test aaa", "4: https://b.test bbb"}},
		"two lines":        {head + "https://a.test,aaa,\"A\nB\"\nhttps://b.test,bbb,B\n", []string{"2: https://a.test aaa A\nB", "4: https://b.test bbb B"}},
		"never closed":     {head + "\"https://a.test,aaa,A\nhttps://b.test,bbb,B\n", []string{"2! a quote is not closed", "3: https://b.test bbb B"}},
		"closed later":     {head + "\"https://a.test,aaa,A\nhttps://b.test,bbb,B\nx,\"y\n", []string{"2! extraneous or missing \" in quoted-field", "3: https://b.test bbb B", "4! a quote is not closed"}},
		"bare quote":       {head + "https://a.test,a\"a,\"A\nhttps://b.test,bbb,B\n", []string{"2! bare \" in non-quoted-field", "3: https://b.test bbb B"}},
		"NUL":              {head + "https://a.test,a\x00a,A\nhttps://b.test,bbb,B\n", []string{"2! the row has a NUL byte", "3: https://b.test bbb B"}},
		"not UTF-8":        {head + "https://a.test,aaa,\xff\nhttps://b.test,bbb,B\n", []string{"2! the text is not UTF-8", "3: https://b.test bbb B"}},
		"huge field":       {head + "https://a.test," + huge + ",A\nhttps://b.test,bbb,B\n", []string{fmt.Sprintf("2! the row is longer than %d bytes", exchange.MaxRow), "3: https://b.test bbb B"}},
		"huge quoted":      {head + "\"" + strings.Repeat("a\n", exchange.MaxRow) + "\"\n", nil},
		"too many columns": {head + "https://a.test,aaa,A,x,y\nhttps://b.test\n", []string{"2! 5 columns, the first line has 3", "3: https://b.test"}},
		"no URL":           {head + ",aaa,A\n", []string{"2! no long URL"}},
		"formulas":         {head + "https://a.test,aaa,=1+1\nhttps://b.test,'-bb,'=1+1\n", []string{"2: https://a.test aaa =1+1", "3: https://b.test -bb =1+1"}},
		"UTF-16":           {"\xff\xfeu\x00r\x00l\x00", []string{"stop: the file is UTF-16: save it as UTF-8"}},
		"spreadsheet":      {"PK\x03\x04....", []string{"stop: the file is compressed or a spreadsheet: save it as CSV"}},
		"nothing":          {"", []string{"stop: the file is empty"}},
		"bad date":         {"url,expires_at\nhttps://a.test,soon\nhttps://b.test,2030-01-02\n", []string{`2! expires_at: cannot read "soon"`, "3: https://b.test"}},
	} {
		got := readCSV(t, c.text, nil)
		if c.want == nil {
			if len(got) == 0 || !strings.Contains(got[0], "not closed") {
				t.Errorf("%s: %.100q", name, got)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func TestHostileJSON(t *testing.T) {
	text := "\ufeff{\"long_url\":\"https://a.test\",\"short_code\":\"aaa\"}\r\n\n[]\n{\"long_url\":1}\n{\n{\"long_url\":\"https://b.test\"} x\n" +
		"{\"long_url\":\"" + strings.Repeat("a", exchange.MaxRow) + "\"}\n\x00\n{\"long_url\":\"https://c.test\",\"custom_alias\":\"ccc\"}"
	r, err := exchange.NewJSON(strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := read(t, r)
	if rows[0] != "1: https://a.test aaa" || rows[len(rows)-1] != "9: https://c.test ccc" || len(rows) != 8 {
		t.Errorf("%q", rows)
	}
	for i, row := range rows[1:7] {
		if !strings.HasPrefix(row, fmt.Sprintf("%d! ", i+3)) {
			t.Errorf("row %d: %q", i+3, row)
		}
	}
}

// JSON Lines of other shorteners are known by the names of their members, as the columns
// of their CSV are.
func TestMembersOfOtherShorteners(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		text string
		want exchange.Record
	}{
		"Bitly, custom": {
			`{"created_at":"2024-01-02T03:04:05+0000","id":"bit.ly/3abcdef","link":"https://bit.ly/3abcdef","custom_bitlinks":["https://bit.ly/abc","https://bit.ly/other"],"long_url":"https://a.test","title":"T","archived":false,"tags":["x","y,z"],"deeplinks":[],"references":{"group":"https://api-ssl.bitly.com/v4/groups/G"}}`,
			exchange.Record{LongURL: "https://a.test", Code: "abc", Title: "T", Tags: []string{"x", "y,z"}},
		},
		"Bitly, its own": {
			`{"link":"https://bit.ly/3abcdef","custom_bitlinks":[],"long_url":"https://a.test","tags":[]}`,
			exchange.Record{LongURL: "https://a.test", Code: "3abcdef"},
		},
		"Shlink": {
			`{"shortUrl":"https://s.test/abc","shortCode":"abc","longUrl":"https://a.test","dateCreated":"2020-01-01T00:00:00+02:00","visitsSummary":{"total":3},"tags":["x"],"meta":{"validSince":null,"validUntil":"2030-01-02T03:04:05Z","maxVisits":7},"domain":"s.test","title":null,"crawlable":false,"forwardQuery":true}`,
			exchange.Record{LongURL: "https://a.test", Code: "abc", Tags: []string{"x"}, Expires: &at, MaxClicks: 7, ForwardQuery: true},
		},
		"Kutt": {
			`{"address":"abc","banned":false,"created_at":"2020-01-01T00:00:00Z","id":17,"link":"https://kutt.it/abc","password":false,"target":"https://a.test","description":"T","visit_count":1,"domain":null,"expire_in":null}`,
			exchange.Record{LongURL: "https://a.test", Code: "abc", Title: "T"},
		},
		"YOURLS": {
			`{"keyword":"abc","url":"https://a.test","title":"T","timestamp":"2020-01-01 00:00:00","ip":"127.0.0.1","clicks":"7"}`,
			exchange.Record{LongURL: "https://a.test", Code: "abc", Title: "T"},
		},
		"Dub": {
			`{"id":"l_1","domain":"dub.sh","key":"abc","url":"https://a.test","archived":false,"expiresAt":"2030-01-02T03:04:05.000Z","title":"T","tags":[{"id":"t1","name":"x","color":"red"}],"user":{"name":"somebody"}}`,
			exchange.Record{LongURL: "https://a.test", Code: "abc", Title: "T", Tags: []string{"x"}, Expires: &at},
		},
		"Short.io": {
			`{"originalURL":"https://a.test","path":"abc","idString":"lnk_1","title":"T","tags":["x"],"expiresAt":1893553445000,"DomainId":9}`,
			exchange.Record{LongURL: "https://a.test", Code: "abc", Title: "T", Tags: []string{"x"}, Expires: &at},
		},
		"Rebrandly": {
			`{"id":"1","title":"T","slashtag":"abc","destination":"https://a.test","domain":{"fullName":"rebrand.ly"},"shortUrl":"rebrand.ly/abc"}`,
			exchange.Record{LongURL: "https://a.test", Code: "abc", Title: "T"},
		},
		"ours":               {`{"long_url":"https://a.test","short_code":"abc","domain":"b.test"}`, exchange.Record{LongURL: "https://a.test", Code: "abc", Domain: "b.test"}},
		"ours, by alias":     {`{"long_url":"https://a.test","custom_alias":"abc","domain":"b.test"}`, exchange.Record{LongURL: "https://a.test", Code: "abc", Domain: "b.test"}},
		"ours, with no code": {`{"long_url":"https://a.test","domain":"b.test","noindex":false}`, exchange.Record{LongURL: "https://a.test", Domain: "b.test", Indexed: true}},
	} {
		r, err := exchange.NewJSON(strings.NewReader(c.text), 0)
		if err != nil {
			t.Fatal(err)
		}
		row, err := r.Next()
		if err != nil || row.Err != nil {
			t.Errorf("%s: %v, %v", name, err, row.Err)
		}
		if d := cmp.Diff(c.want, row.Record); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
	for _, text := range []string{
		`{}`, `null`, `{"title":"T"}`, `{"https://a.test":1}`, `{"url":{"x":1}}`, `{"url":[[["https://a.test"]]]}`, `{"url":"https://a.test","maxVisits":"many"}`,
		`{"url":"https://a.test","expiresAt":1e12}`, `{"url":"https://a.test"} {}`, `{"url":"https://a.test","id":`, `{"long_url":["https://a.test"]}`,
	} {
		r, err := exchange.NewJSON(strings.NewReader(text), 0)
		if err != nil {
			t.Fatal(err)
		}
		if row, err := r.Next(); err != nil || row.Err == nil {
			t.Errorf("%s is %+v, %v", text, row.Record, err)
		}
	}
}

// A domain is one of ours where the file speaks our language, or when the caller says so;
// in the exports of others it is where their links were.
func TestDomainsAreTakenFromOurOwnNames(t *testing.T) {
	for text, want := range map[string]string{
		"long_url,domain\nhttps://a.test,b.test\n":                          "b.test",
		"domain,short_code,long_url\nb.test,abc,https://a.test\n":           "b.test",
		"Domain,custom_alias,long_url,title\nb.test,abc,https://a.test,T\n": "b.test",
		"domain,key,url\ndub.sh,abc,https://a.test\n":                       "",
		"domain,shortCode,longUrl\ns.test,abc,https://a.test\n":             "",
		"domain,alias,long_url\ntinyurl.com,abc,https://a.test\n":           "",
	} {
		for _, chosen := range []map[string]string{nil, {"domain": "domain"}, {"domain": ""}} {
			r, err := exchange.NewCSV(strings.NewReader(text), 0, chosen)
			if err != nil {
				t.Fatal(err)
			}
			row, err := r.Next()
			if err != nil || row.Err != nil {
				t.Fatal(err, row.Err)
			}
			column, decided := chosen["domain"]
			got := row.Record.Domain
			if !decided && got != want || decided && (got != "") != (column != "") {
				t.Errorf("%q with %v: %q", text, chosen, got)
			}
		}
	}
}

// A reader that begins at the end of a row goes on with the next, as if it had read both.
func TestReadersGoOn(t *testing.T) {
	const text = "url,code\nhttps://a.test,aaa\n\"https://b\n.test\",bbb\n\nhttps://c.test,ccc\nhttps://d.test,ddd\n"
	r, err := exchange.NewCSV(strings.NewReader(text), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	rest := read(t, r)
	again, err := exchange.NewCSV(strings.NewReader(text), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rest {
		row, err := again.Next()
		if err != nil {
			t.Fatal(err)
		}
		later, err := exchange.NewCSV(strings.NewReader(text), row.End, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, later); !slices.Equal(rest[i+1:], got) {
			t.Errorf("from byte %d: %q, want %q", row.End, got, rest[i+1:])
		}
	}
}

// FuzzRead reads any bytes as CSV and as JSON: rows in order, in bounded memory.
func FuzzRead(f *testing.F) {
	f.Add("url,code\nhttps://a.test,aaa\n", "{\"long_url\":\"https://a.test\"}\n")
	f.Add("long_url,domain\nhttps://a.test,b\n", "{\"url\":\"https://a.test\",\"tags\":[{\"name\":\"x\"}],\"meta\":{\"maxVisits\":1}}\n")
	f.Add("url;code\n\"a\"\"\nb\";\"\n", "{\n}\n")
	f.Fuzz(func(t *testing.T, table, lines string) {
		for _, text := range []string{table, lines} {
			last, at := 0, int64(0)
			format, all, err := exchange.Sniff(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			var r exchange.Reader
			if format == "jsonl" {
				r, err = exchange.NewJSON(all, 0)
			} else {
				r, err = exchange.NewCSV(all, 0, nil)
			}
			for err == nil {
				var row exchange.Row
				if row, err = r.Next(); err != nil {
					break
				}
				if row.Line <= last || row.Next <= row.Line || row.End <= at || row.End > int64(len(text)) {
					t.Fatalf("row %+v after line %d, byte %d", row, last, at)
				}
				last, at = row.Next-1, row.End
			}
			if errors.Is(err, io.EOF) && strings.TrimSpace(text) != "" && at > int64(len(text)) {
				t.Fatalf("read %d of %d bytes", at, len(text))
			}
		}
	})
}

// A file that is one endless field takes no memory.
func TestMemoryIsBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("url,code\n\""), io.LimitReader(repeat("0123456789abcde\n"), 64<<20))
	r, err := exchange.NewCSV(endless, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > 16<<20 {
		t.Errorf("%d bytes on the heap", after.HeapAlloc)
	}
	runtime.KeepAlive(r)
}

// repeat is a reader of one text for ever.
type repeat string

func (r repeat) Read(b []byte) (n int, err error) {
	for n < len(b) {
		k := copy(b[n:], r)
		if k < len(r) {
			break
		}
		n += k
	}
	return n, nil
}

// Bitly names the codes that people chose, or none, in one column, and its own in another.
func TestBitlysOwnCodesAreKept(t *testing.T) {
	for name, rows := range map[string]string{
		"link":  "title,long_url,link,custom_bitlinks\na,https://a.example,https://bit.ly/bxx1,\nb,https://b.example,https://bit.ly/bxx2,[]\nc,https://c.example,https://bit.ly/bxx3,[bit.ly/sale]\n",
		"id":    "custom_bitlinks,long_url,id\n,https://a.example,bit.ly/bxx1\n[],https://b.example,bit.ly/bxx2\nhttps://bit.ly/sale,https://c.example,bit.ly/bxx3\n",
		"quote": "long_url,link,custom_bitlinks\nhttps://a.example,http://bit.ly/bxx1,\"\"\nhttps://b.example,bit.ly/bxx2,\"[\"\"\"\"]\"\nhttps://c.example,bit.ly/bxx3,\"[\"\"bit.ly/sale\"\"]\"\n",
	} {
		r, err := exchange.NewCSV(strings.NewReader(rows), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for row, err := r.Next(); err == nil; row, err = r.Next() {
			got = append(got, row.Record.Code)
		}
		if want := []string{"bxx1", "bxx2", "sale"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// People choose columns by their place: names may be missing, equal or in another script.
func TestColumnsAreChosenByPlace(t *testing.T) {
	for _, tt := range []struct {
		text    string
		chosen  map[string]string
		columns []exchange.Column
		rows    []string
	}{
		{
			"адрес,имя,имя\n'=https://a.example/,T,abc\n",
			map[string]string{"long_url": "#1", "short_code": "#3"},
			[]exchange.Column{{"адрес", "long_url", "=https://a.example/"}, {"имя", "", "T"}, {"имя", "short_code", "abc"}},
			[]string{"2: =https://a.example/ abc"},
		},
		{
			"https://a.example/,abc,T\nhttps://b.example/,,U\n",
			map[string]string{"title": "#3", "short_code": ""},
			[]exchange.Column{{"", "long_url", "https://a.example/"}, {"", "", "abc"}, {"", "title", "T"}},
			[]string{"1: https://a.example/  T", "2: https://b.example/  U"},
		},
		{"url,a\nhttps://a.example/,b\n", map[string]string{"title": "#3"}, nil, []string{`stop: no column is named "#3"`}},
		{"url,a\nhttps://a.example/,b\n", map[string]string{"title": "#0"}, nil, []string{`stop: no column is named "#0"`}},
	} {
		if got := readCSV(t, tt.text, tt.chosen); !slices.Equal(got, tt.rows) {
			t.Errorf("%q, want %q", got, tt.rows)
		}
		r, err := exchange.NewCSV(strings.NewReader(tt.text), 0, tt.chosen)
		if err != nil {
			continue
		}
		if _, err := r.Next(); err != nil || !slices.Equal(r.Columns(), tt.columns) {
			t.Errorf("%+v, %v, want %+v", r.Columns(), err, tt.columns)
		}
	}
	_, err := exchange.NewCSV(strings.NewReader("a,b\nhttps://a.example/,x\n"), 0, nil)
	none, ok := errors.AsType[*exchange.NoURLError](err)
	if want := []exchange.Column{{"a", "", "https://a.example/"}, {"b", "", "x"}}; !ok || !slices.Equal(none.Columns, want) {
		t.Errorf("%v, %+v, want %+v", err, none, want)
	}
}

// A file of which nothing would be made is an error, not an import of no rows.
func TestFilesWithoutRowsOrURLsAreRefused(t *testing.T) {
	long := strings.Repeat("https://a.example/,x\r", 10_000)
	for text, want := range map[string]string{
		"long_url,alias\rhttps://a.example/,x\r": "carriage returns only",
		"long_url,alias\r" + long:                "carriage returns only",
		"title,alias\na,b\n":                     "no column with long URLs",
	} {
		if _, err := exchange.NewCSV(strings.NewReader(text), 0, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, err := exchange.NewCSV(strings.NewReader("long_url,alias\r\r\nhttps://a.example/,x\r\n"), 0, nil); err != nil {
		t.Error(err)
	}
}
