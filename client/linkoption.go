package client

import (
	"context"
	"net/url"
	"strconv"
)

// LinkOption says more about a call on one link.
type LinkOption func(*linkCall)

// linkCall is what options add to a request.
type linkCall struct {
	query   url.Values
	headers map[string]string
}

// OnDomain means the link of the code on this host; "" and without it: on the server's
// default domain.
func OnDomain(host string) LinkOption {
	return func(l *linkCall) {
		if host != "" {
			l.query.Set("domain", host)
		}
	}
}

// IfVersion does it only while the link has this version. Otherwise the call changes
// nothing and returns a Problem with status 412.
func IfVersion(version uint64) LinkOption {
	return func(l *linkCall) { l.headers["If-Match"] = `"` + strconv.FormatUint(version, 10) + `"` }
}

// link calls the path of one link.
func (c *Client) link(ctx context.Context, method, code string, options []LinkOption, body, out any) error {
	return c.below(ctx, method, code, "", options, body, out)
}

// below calls a path below that of one link.
func (c *Client) below(ctx context.Context, method, code, path string, options []LinkOption, body, out any) error {
	return c.about(ctx, method, linkPath(code)+path, options, body, out)
}

// about calls a path that is about one link.
func (c *Client) about(ctx context.Context, method, path string, options []LinkOption, body, out any) error {
	l := linkCall{query: url.Values{}, headers: map[string]string{}}
	for _, o := range options {
		o(&l)
	}
	return c.send(ctx, method, path, l.query, l.headers, body, out)
}
