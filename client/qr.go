package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// QRQuery says how a QR code is drawn; zero fields leave it to the server.
type QRQuery struct {
	Domain     string // the link's host; "" = the server's default domain
	Format     string // svg or png
	Size       int    // width and height in pixels, 64 to 2,048
	Margin     *int   // the quiet zone in modules, 0 to 16
	Level      string // L, M, Q or H: how much of the code may be lost
	Foreground string // the colour of dark modules, as RRGGBB
	Background string
}

// QR returns the picture of the link's short URL, as the bytes of an SVG or PNG file.
// Its clicks are told from others by their trigger.
func (c *Client) QR(ctx context.Context, code string, query QRQuery) ([]byte, error) {
	return c.picture(ctx, linkPath(code)+"/qr", query)
}

// AliasQR returns the picture that a link with the alias would have.
func (c *Client) AliasQR(ctx context.Context, alias string, query QRQuery) ([]byte, error) {
	return c.picture(ctx, "/api/v1/aliases/"+url.PathEscape(alias)+"/qr", query)
}

func (c *transport) picture(ctx context.Context, path string, query QRQuery) ([]byte, error) {
	q := url.Values{}
	setTexts(q, map[string]string{
		"domain": query.Domain, "format": query.Format, "level": query.Level, "fg": query.Foreground, "bg": query.Background,
	})
	if query.Size != 0 {
		q.Set("size", strconv.Itoa(query.Size))
	}
	if query.Margin != nil {
		q.Set("margin", strconv.Itoa(*query.Margin))
	}
	var picture raw
	err := c.call(ctx, http.MethodGet, path, q, nil, &picture)
	return picture, err
}

// QRText returns what QR draws for the link: its short URL with the trigger. An empty
// domain is the server's default domain.
func (c *Client) QRText(ctx context.Context, code, domain string) (string, error) {
	q := url.Values{}
	setTexts(q, map[string]string{"domain": domain})
	var l Link
	if err := c.call(ctx, http.MethodGet, linkPath(code), q, nil, &l); err != nil {
		return "", err
	}
	return l.ShortURL + "?qr=1", nil
}

// raw is a body that is not JSON.
type raw []byte
