// Package client talks to a curt server over its HTTP API. It uses only the
// standard library, and the curt command line is its first user.
//
//	c, err := client.New("http://127.0.0.1:8080", client.WithKey(os.Getenv("CURT_API_KEY")))
//	l, err := c.Create(ctx, client.NewLink{LongURL: "https://example.com/"})
//
// A Client is safe for many goroutines. Errors that the server explained are
// [*Problem]; use errors.As. Calls end when their context does.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ErrNoAnswer is wrapped by the error of a call that got no answer, or not all of it.
// What the call was to change may have been changed.
var ErrNoAnswer = errors.New("no response")

// ErrText is wrapped by the error of a call that was to send what is no UTF-8; nothing was
// sent.
var ErrText = errors.New("expected text in UTF-8")

// ErrRedirect is wrapped by the error of a call that was answered with a redirect. None is
// followed: the key would go with it to whatever address an answer names, in clear where
// that begins with http. Nothing was changed; the client wants the address that the error
// has.
var ErrRedirect = errors.New("the server redirects elsewhere")

// maxAnswer bounds what the client reads of one answer, in bytes.
const maxAnswer = 32 << 20

// Client calls one server; New creates it. Its own methods are those of links, their statistics and
// the server itself, its fields hold the others.
type Client struct {
	*transport

	Aliases    *Aliases
	Keys       *Keys
	Jobs       *Jobs
	Lists      *Lists
	Moderation *Moderation
}

// Aliases calls the operations of reservations.
type Aliases struct{ *transport }

// Keys calls the operations of API keys.
type Keys struct{ *transport }

// Jobs calls the operations of imports and exports that the server runs.
type Jobs struct{ *transport }

// Lists calls the operations of the lists that moderators keep.
type Lists struct{ *transport }

// Moderation calls the operations of reports, appeals, decisions, bans and the journal.
type Moderation struct{ *transport }

// transport sends requests to one server.
type transport struct {
	base *url.URL
	http *http.Client
	key  string
}

// Option changes how a Client calls.
type Option func(*transport)

// WithKey sends the API key with every call. An empty key sends none.
func WithKey(key string) Option { return func(t *transport) { t.key = key } }

// WithHTTPClient replaces the HTTP client; the default gives up after 30 s. Its
// CheckRedirect is never asked: see [ErrRedirect].
func WithHTTPClient(h *http.Client) Option { return func(t *transport) { t.http = h } }

// New returns a client for the server at base, such as "https://go.example.com".
func New(base string, options ...Option) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server address %q: expected http://host or https://host", base)
	}
	t := &transport{base: u, http: &http.Client{Timeout: 30 * time.Second}}
	for _, o := range options {
		o(t)
	}
	own := *t.http // the caller's other calls may follow redirects
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.http = &own
	return &Client{transport: t, Aliases: &Aliases{t}, Keys: &Keys{t}, Jobs: &Jobs{t}, Lists: &Lists{t}, Moderation: &Moderation{t}}, nil
}

// Problem is an error that the server explained (RFC 9457).
type Problem struct {
	Type       string        `json:"type"`
	Title      string        `json:"title"`
	Status     int           `json:"status"`
	Detail     string        `json:"detail"`
	Field      string        `json:"field"`          // the part of the request that is wrong; Detail names it too
	RequestID  string        `json:"request_id"`     // under which the server logged its own failure
	Case       string        `json:"case"`           // of a create refused because of its score: a moderator may allow the destination
	AppealURL  string        `json:"appeal_url"`     // of a page to appeal with the case
	Until      time.Time     `json:"reserved_until"` // of an alias that another workspace has reserved; zero = it is none
	RetryAfter time.Duration `json:"-"`              // from the Retry-After header; 0 = not sent
}

// Error returns the problem in one line.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	return fmt.Sprintf("%s (HTTP %d)", text, p.Status)
}

// call sends body (nil = none) as JSON and reads the answer into out (nil = none).
func (c *transport) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	return c.send(ctx, method, path, query, nil, body, out)
}

// send is call with further headers.
func (c *transport) send(ctx context.Context, method, path string, query url.Values, headers map[string]string, body, out any) error {
	req, err := c.request(ctx, method, path, query, headers, body)
	if err != nil {
		return err
	}
	u := req.URL
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w: %w", method, u.Redacted(), ErrNoAnswer, withoutURL(err))
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("%s %s: %w: read it: %w", method, u.Redacted(), ErrNoAnswer, err)
	}
	if resp.StatusCode >= 300 {
		return problem(resp, text)
	}
	if out == nil {
		return nil
	}
	if picture, ok := out.(*raw); ok {
		*picture = text
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: not a response of a curt server: %w", method, u.Redacted(), err)
	}
	return nil
}

// request makes a request with everything that all of them say.
func (c *transport) request(ctx context.Context, method, path string, query url.Values, headers map[string]string, body any) (*http.Request, error) {
	var content io.Reader
	media := "application/json"
	if data, is := body.(raw); is {
		content, media = bytes.NewReader(data), "application/octet-stream"
	} else if body != nil {
		text, err := encode(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", media)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}

// encode returns body as JSON, or ErrText: encoding/json writes the escape of U+FFFD for
// bytes that are no text, and another title or URL would be stored than was meant.
func encode(body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	for rest := text; ; {
		before, after, found := bytes.Cut(rest, []byte(`\ufffd`))
		if !found {
			return text, nil
		}
		if backslashes := len(before) - len(bytes.TrimRight(before, `\`)); backslashes%2 == 0 {
			return nil, ErrText
		}
		rest = after
	}
}

// withoutURL takes off the "Get "http://…":" that the error of http.Client begins with.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func problem(resp *http.Response, text []byte) error {
	if to, err := resp.Location(); err == nil && resp.StatusCode < 400 {
		asked := resp.Request
		return fmt.Errorf("%s %s: %w, to %s (HTTP %d)", asked.Method, asked.URL.Redacted(), ErrRedirect, to.Redacted(), resp.StatusCode)
	}
	p := &Problem{}
	if json.Unmarshal(text, p) != nil || p.Title == "" {
		p = &Problem{Title: http.StatusText(resp.StatusCode)}
	}
	p.Status = resp.StatusCode
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		p.RetryAfter = time.Duration(s) * time.Second
	}
	return p
}
