package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/qr"
)

// qrAnswers are those of operations that draw.
func qrAnswers(d describer, problems ...int) map[string]*huma.Response {
	answers := d.answers(200, "The picture.", nil, map[string]*huma.Param{
		"ETag": header("Names these bytes, in quotes."),
	}, problems...)
	text := &huma.Schema{Type: huma.TypeString}
	answers["200"].Content = map[string]*huma.MediaType{qr.SVG.MediaType(): {Schema: text}, qr.PNG.MediaType(): {Schema: text}}
	answers["304"] = &huma.Response{Description: "The picture is as If-None-Match has it."}
	return answers
}

// qrParams say how a code is drawn, beside those that say of what.
func qrParams(of ...*huma.Param) []*huma.Param {
	return append(of,
		queryParam("format", "Instead of an Accept header; SVG without both.", &huma.Schema{Type: huma.TypeString, Enum: []any{"svg", "png"}}),
		queryParam("size", "Width and height in pixels.", rangeSchema(qr.MinSize, qr.MaxSize, qr.DefaultSize)),
		queryParam("margin", "The quiet zone around the code, in modules.", rangeSchema(0, qr.MaxMargin, qr.DefaultMargin)),
		queryParam("level", "How much of the code may be lost: 7, 15, 25 or 30 %.", enumSchema("M", "L", "Q", "H")),
		queryParam("fg", "The colour of dark modules, darker than bg.", colorSchema("000000")),
		queryParam("bg", "The colour of what is around them.", colorSchema("ffffff")),
		&huma.Param{
			Name: "If-None-Match", In: "header", Description: "Answer only if the picture has another ETag.",
			Schema: &huma.Schema{Type: huma.TypeString},
		},
	)
}

func (a *api) qrOperation(d describer) *operation {
	return &operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: linksPath + "/{code}/qr", OperationID: "link-qr", Summary: "Draw the QR code of a link",
			Description: "The code says the short URL with ?qr=1, by which its clicks are told from others. Whatever the state of the link, its owner may draw " +
				"its code; visitors get it without a key at /{code}/qr, with the same parameters, while the link leads somewhere. " +
				"Colours that scanners cannot tell apart are refused, and sizes that the modules do not fit into, with 2 pixels each in a PNG.",
			Parameters: qrParams(codeParam(), domainParam()), Responses: qrAnswers(d, 404),
		},
		action: auth.ReadLink, serve: (*call).linkQR,
	}
}

// colorSchema is RRGGBB.
func colorSchema(otherwise string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^[0-9A-Fa-f]{6}$", Default: otherwise}
}

func (c *call) linkQR() error {
	o, err := qr.Parse(c.query.Get)
	if err != nil {
		return fmt.Errorf("read the query: %w", err)
	}
	k, err := c.key()
	if err != nil {
		return err
	}
	if _, err := c.api.links.Get(c.r.Context(), c.who, k); err != nil {
		return err
	}
	return c.draw(k, o)
}

// draw answers with the QR code of a short URL.
func (c *call) draw(k link.Key, o qr.Options) error {
	negotiated := o.Format == qr.Any
	if negotiated {
		o.Format = qr.Preferred(c.r.Header["Accept"])
	}
	said := qr.Text(c.api.sites.shortURL(k))
	tag := o.Tag(said)
	fresh := qr.Matches(c.r.Header["If-None-Match"], tag)
	var picture []byte
	if !fresh {
		var err error
		if picture, err = c.api.drawer.Draw(c.r.Context(), said, o); err != nil {
			return fmt.Errorf("draw the code of %s: %w", k, err)
		}
	}
	h := c.w.Header()
	commonHeaders(h)
	h["Cache-Control"] = []string{"private, no-cache"} // whether the caller may see the link is asked each time
	h["Etag"] = []string{tag}
	h["Content-Security-Policy"] = []string{qr.ContentSecurityPolicy}
	if negotiated {
		h["Vary"] = []string{"Accept"}
	}
	if fresh {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h["Content-Type"] = []string{o.Format.MediaType()}
	h["Content-Length"] = []string{strconv.Itoa(len(picture))}
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(picture) // the client is gone: nobody is left to tell
	return nil
}
