package lane_test

import (
	"strings"
	"testing"
)

// refusals are heads that RFC 9112 forbids, each with the reason. net/http answers many
// of them.
func refusals() map[string]string {
	const get, host = "GET /live HTTP/1.1\r\n", "Host: links.example\r\n"
	const post = "POST /api/x HTTP/1.1\r\n" + host
	return map[string]string{
		"bare LF after the request line": "GET /live HTTP/1.1\n" + host + "\r\n",
		"bare LF after a field":          get + "Host: links.example\nX: y\r\n\r\n",
		"bare LF as the empty line":      get + host + "\n",
		"all lines end in LF":            "GET /live HTTP/1.1\nHost: links.example\n\n",
		"bare LF for net/http":           "POST /api/x HTTP/1.1\nHost: links.example\r\nContent-Length: 0\r\n\r\n",
		"CR in a value":                  get + host + "X: a\rb\r\n\r\n",
		"CR CR LF":                       get + host + "X: a\r\r\n\r\n",
		"CR in the target":               "GET /li\rve HTTP/1.1\r\n" + host + "\r\n",
		"folded line":                    get + host + "X: a\r\n b\r\n\r\n",
		"folded line with a tab":         get + host + "X: a\r\n\tb\r\n\r\n",
		"folded Host":                    get + "Host:\r\n links.example\r\n\r\n",
		"folded first field":             get + " X: a\r\n" + host + "\r\n",
		"folded length":                  post + "Content-Length:\r\n 5\r\n\r\nhello",
		"space before the colon":         get + "Host : links.example\r\n\r\n",
		"space before a length's colon":  post + "Content-Length : 5\r\n\r\nhello",
		"tab before a coding's colon":    post + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
		"empty name":                     get + host + ": x\r\n\r\n",
		"no colon":                       get + host + "nothing\r\n\r\n",
		"no token":                       get + host + "X(y): z\r\n\r\n",
		"name of high bytes":             get + host + "X\xc3\xa4: z\r\n\r\n",
		"NUL in a value":                 get + host + "X: a\x00b\r\n\r\n",
		"NUL in a name":                  get + host + "X\x00: b\r\n\r\n",
		"NUL in the target":              "GET /li\x00ve HTTP/1.1\r\n" + host + "\r\n",
		"DEL in a value":                 get + host + "X: a\x7fb\r\n\r\n",
		"vertical tab in a coding":       post + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n",
		"tab in the request line":        "GET /live\tHTTP/1.1 HTTP/1.1\r\n" + host + "\r\n",
		"no Host":                        get + "X: y\r\n\r\n",
		"two Hosts":                      get + host + host + "\r\n",
		"two different Hosts":            get + host + "Host: go.example\r\n\r\n",
		"empty Host":                     get + "Host:\r\n\r\n",
		"Host of spaces":                 get + "Host: \t \r\n\r\n",
		"Host with a path":               get + "Host: links.example/x\r\n\r\n",
		"Host with a user":               get + "Host: a@links.example\r\n\r\n",
		"two Hosts for net/http":         "POST /api/x HTTP/1.1\r\n" + host + "host: b\r\nContent-Length: 0\r\n\r\n",
		"two Hosts, absolute form":       "GET http://links.example/live HTTP/1.1\r\n" + host + "HOST: b\r\n\r\n",
		"two lengths":                    post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"two equal lengths":              post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"list of lengths":                post + "Content-Length: 5, 5\r\n\r\nhello",
		"signed length":                  post + "Content-Length: +5\r\n\r\nhello",
		"hexadecimal length":             post + "Content-Length: 0x5\r\n\r\nhello",
		"empty length":                   post + "Content-Length:\r\n\r\n",
		"length with a comment":          post + "Content-Length: 5 5\r\n\r\nhello",
		"length, then coding":            post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"coding, then length":            post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"coding on HTTP/1.0":             "POST /api/x HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET with length and coding":     get + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	}
}

// foreigners are shapes that others disagree about and that are left to net/http as
// they are: the answer, and that nothing behind them is taken for a request.
func foreigners() map[string]string {
	const host = "Host: links.example\r\n"
	const post = "POST /api/x HTTP/1.1\r\n" + host
	return map[string]string{
		"two codings":        post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"coding that is not": post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"gzip, chunked":      post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"identity":           post + "Transfer-Encoding: identity\r\n\r\nGET /live HTTP/1.1\r\n" + host + "\r\n",
		"huge length":        post + "Content-Length: 99999999999999999999\r\n\r\n",
		"junk after a chunk": post + "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n",
		"bad chunk size":     post + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
		"body of a GET":      "GET /live HTTP/1.1\r\n" + host + "Content-Length: 40\r\n\r\nGET /gone HTTP/1.1\r\nHost: links.example\r\n\r\n",
		"HTTP/0.9":           "GET /live\r\n\r\n",
		"version in small":   "GET /live http/1.1\r\n" + host + "\r\n",
		"HTTP/1.10":          "GET /live HTTP/1.10\r\n" + host + "\r\n",
	}
}

func smuggling() (all []string) {
	for _, s := range refusals() {
		all = append(all, s)
	}
	for _, s := range foreigners() {
		all = append(all, s)
	}
	return all
}

// TestForbiddenShapesAre400 sends each shape alone, behind an answered request, and with
// a request behind it that must not be answered.
func TestForbiddenShapesAre400(t *testing.T) {
	on := start(t, true)
	const good = "GET /live HTTP/1.1\r\nHost: links.example\r\n\r\n"
	for why, shape := range refusals() {
		t.Run(why, func(t *testing.T) {
			for seed := range uint64(3) {
				if got := statuses(answers(t, on.exchange(t, cut(shape, seed)...))); got != "400" {
					t.Errorf("%q in pieces by %d: %s", shape, seed, got)
				}
				if got := statuses(answers(t, on.exchange(t, cut(shape+good, seed)...))); got != "400" {
					t.Errorf("%q with a request behind it: %s", shape, got)
				}
			}
			nc := on.dial(t)
			roundTrip(t, nc, good)
			if _, err := nc.Write([]byte(shape)); err != nil {
				t.Fatal(err)
			}
			_ = nc.CloseWrite()
			if got := statuses(answers(t, rest(t, nc))); got != "400" {
				t.Errorf("%q on a used connection: %s", shape, got)
			}
		})
	}
	on.rec.mu.Lock()
	defer on.rec.mu.Unlock()
	for _, c := range on.rec.clicks {
		if string(c.Code) != "live" || strings.Contains(string(c.Query), " ") {
			t.Errorf("click %+v", c)
		}
	}
}
