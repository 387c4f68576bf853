// Package lanetest holds requests by which one program in front of another has been made
// to lose count: where they end, the two disagree. The lane's own tests send them alone,
// those of test/lane through real proxies.
//
// They ask for /live, /gone and /api/x of links.example.
package lanetest

// Refused are heads that RFC 9112 forbids, by the reason. net/http answers many of them.
func Refused() map[string]string {
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

// Foreign are shapes that others disagree about and that are left to net/http as they
// are: the answer, and that nothing behind them is taken for a request.
func Foreign() map[string]string {
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

// Bodies are malformed only after a head, which the lane leaves to net/http.
func Bodies() map[string]string {
	const post = "POST /api/x HTTP/1.1\r\nHost: links.example\r\nTransfer-Encoding: chunked\r\n\r\n"
	return map[string]string{
		"bare LF behind a chunk's size": post + "5\nhello\r\n0\r\n\r\n",
		"bare LF behind a chunk":        post + "5\r\nhello\n0\r\n\r\n",
		"bare LF in an extension":       post + "5;a\nb\r\nhello\r\n0\r\n\r\n",
		"bare CR in an extension":       post + "5;a\rb\r\nhello\r\n0\r\n\r\n",
		"bare LF behind the last chunk": post + "5\r\nhello\r\n0\n\r\n",
		"bare LF behind a trailer":      post + "5\r\nhello\r\n0\r\nX: y\n\r\n",
		"bare LF as the last line":      post + "5\r\nhello\r\n0\r\n\n",
		"folded trailer":                post + "5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n",
		"chunk longer than it says":     post + "4\r\nhello\r\n0\r\n\r\n",
		"size beyond 64 bits":           post + "10000000000000005\r\nhello\r\n0\r\n\r\n",
		"no size":                       post + ";x\r\nhello\r\n0\r\n\r\n",
		"hexadecimal prefix":            post + "0x5\r\nhello\r\n0\r\n\r\n",
	}
}
