package links

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/auth"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
	"curt/internal/qr"
	"curt/internal/shorten"
	"curt/internal/shorten/reserve"
)

// Alias says whether a link may have a code.
type Alias struct {
	Alias         string     `json:"alias"`
	Domain        string     `json:"domain" doc:"The host of the link."`
	ShortURL      *string    `json:"short_url" format:"uri" doc:"The short URL that the link would have; null if the alias is invalid."`
	Available     bool       `json:"available" doc:"Whether a create by you could have the alias now. It is not reserved by this request: the first create gets it."`
	State         string     `json:"state" enum:"free,taken,reserved,refused,invalid" doc:"reserved: by a workspace, until reserved_until, or for the operator. An alias that your workspace has reserved is reserved and available."`
	Reason        *string    `json:"reason" enum:"invalid,reserved,refused,taken,held" doc:"Why the alias is not available. held: another workspace has reserved it; reserved: it is kept for the operator."`
	Detail        *string    `json:"detail" doc:"The reason as text."`
	ReservedUntil *time.Time `json:"reserved_until" doc:"When the reservation ends; null: there is none."`
	Suggestions   []string   `json:"suggestions" nullable:"false" doc:"Three other aliases that were free within the last minute, if you could not have this one; fewer if almost all that CURT_ALIAS_ALPHABET and CURT_ALIAS_MAX allow are taken."`
}

const aliasPath = "/api/v1/aliases/{alias}"

// aliases are the operations on codes that a link has or may get.
type aliases struct{ *Links }

// aliasParams name an alias.
func aliasParams(about, example string) []*huma.Param {
	return []*huma.Param{
		{Name: "alias", In: "path", Required: true, Description: about + "; case-sensitive.", Example: example, Schema: &huma.Schema{Type: huma.TypeString}},
		kernel.QueryParam("domain", "The domain of the link. Default: the default domain.", &huma.Schema{Type: huma.TypeString}),
	}
}

func (as *aliases) operations(d kernel.Describer) []*kernel.Operation {
	params := aliasParams("The alias to check", "sale")
	return append([]*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: aliasPath, OperationID: "check-alias", Summary: "Check alias availability",
				Description: "For feedback while an alias is typed. The code of a deleted link stays taken. The answer never says which link has a code, " +
					"or which workspace has reserved it, and that an alias is taken or reserved may be up to a minute old. " +
					"A network that requests many unknown codes, here or as a visitor, is answered 429 for a while.",
				Parameters: params, Responses: d.Answers(200, "The availability of the alias.", Alias{}, nil, 429),
			},
			Action: auth.CreateLink, Serve: kernel.Reply(http.StatusOK, as.check),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: aliasPath + "/qr", OperationID: "alias-qr", Tags: []string{kernel.TagQR}, Summary: "Get the QR code of an alias",
				Description: "Works before the link exists. Invalid aliases return 400.",
				Parameters:  qrParams(params...), Responses: qrAnswers(d),
			},
			Action: auth.CreateLink, Serve: as.drawAlias,
		},
	}, as.reservationOperations(d)...)
}

func (as *aliases) drawAlias(c *kernel.Call) error {
	o, err := qr.Parse(c.Query.Get)
	if err != nil {
		return fmt.Errorf("read the query: %w", err)
	}
	k, err := as.alias(c)
	if err != nil {
		return err
	}
	if err := shorten.CheckAlias(string(k.Code)); err != nil && !errors.Is(err, shorten.ErrReserved) {
		return aboutAlias(err)
	}
	return as.draw(c, k, o)
}

func (as *aliases) check(c *kernel.Call) (answer Alias, err error) {
	k, err := as.alias(c)
	if err != nil {
		return answer, err
	}
	answer = Alias{Alias: strings.ToValidUTF8(string(k.Code), "\uFFFD"), Domain: as.Host(k.Domain), State: "free", Suggestions: []string{}}
	found, err := as.Service.Check(c.R.Context(), c.Now, c.Who, k.Domain, string(k.Code))
	if err != nil {
		return answer, err
	}
	if err := as.scanned(c, &found); err != nil {
		return answer, err
	}
	if link.ValidCode(k.Code) {
		short := as.ShortURL(k)
		answer.ShortURL = &short
	}
	if r := &found.Reservation; !r.Until.IsZero() {
		answer.State, answer.ReservedUntil = "reserved", &r.Until
	}
	for _, code := range found.Suggestions {
		answer.Suggestions = append(answer.Suggestions, string(code))
	}
	if found.Err == nil {
		answer.Available = true
		return answer, nil
	}
	return answer, answer.refuse(found.Err)
}

// refuse says why the alias is not available, or returns an error that is no reason.
func (a *Alias) refuse(why error) error {
	reason, detail := "", ""
	var wrong *shorten.InvalidError
	switch {
	case errors.As(why, &wrong):
		reason, detail = "invalid", wrong.PublicMessage()
	case errors.Is(why, shorten.ErrReserved):
		reason, detail = "reserved", shorten.ErrReserved.Error()
	case errors.Is(why, shorten.ErrRefused):
		reason, detail = "refused", shorten.ErrRefused.Error()
	case errors.Is(why, shorten.ErrTaken):
		reason, detail = "taken", "this alias is taken"
	case errors.Is(why, link.ErrExists):
		reason, detail = "held", "another workspace has reserved this alias"
	default:
		return why
	}
	if a.State = reason; reason == "held" {
		a.State = "reserved"
	}
	a.Reason, a.Detail = &reason, &detail
	return nil
}

// alias returns the code that the path and ?domain= name, valid or not.
func (as *aliases) alias(c *kernel.Call) (link.Key, error) {
	domain, ok := as.Service.Domain(c.Query.Get("domain"))
	if !ok {
		return link.Key{}, kernel.BadField("domain", "unknown domain")
	}
	return link.Key{Domain: domain, Code: link.Code(c.R.PathValue("alias"))}, nil
}

// scanned charges an alias that no link has to the caller's network, as a visit to it is, and
// refuses a network that has spent its budget. It learns nothing about aliases that are taken
// either: unlike a visit, nobody loses anything by that.
func (as *aliases) scanned(c *kernel.Call, found *reserve.Availability) error {
	budget, client := as.Unknown, c.Addr()
	var wait time.Duration
	allowed := true
	switch {
	case found.Err == nil && found.Reservation.Until.IsZero():
		wait, allowed = budget.Spend(c.R.Context(), c.Now, client)
	case found.Err == nil || errors.Is(found.Err, link.ErrExists):
		wait, allowed = budget.Peek(c.R.Context(), c.Now, client)
	}
	if !allowed {
		return &kernel.LimitedError{Wait: wait}
	}
	return nil
}

// qrAnswers are those of operations that draw.
func qrAnswers(d kernel.Describer, problems ...int) map[string]*huma.Response {
	answers := d.Answers(200, "The image.", nil, map[string]*huma.Param{
		"ETag": kernel.Header("Identifies this image, in quotes."),
	}, problems...)
	text := &huma.Schema{Type: huma.TypeString}
	answers["200"].Content = map[string]*huma.MediaType{qr.SVG.MediaType(): {Schema: text}, qr.PNG.MediaType(): {Schema: text}}
	return unchanged(answers, "The image matches If-None-Match.")
}

// qrParams say how a code is drawn, beside those that say of what.
func qrParams(of ...*huma.Param) []*huma.Param {
	return append(of,
		kernel.QueryParam("format", "Overrides the Accept header. Default: SVG.", &huma.Schema{Type: huma.TypeString, Enum: []any{"svg", "png"}}),
		kernel.QueryParam("size", "Width and height in pixels.", kernel.RangeSchema(qr.MinSize, qr.MaxSize, qr.DefaultSize)),
		kernel.QueryParam("margin", "The quiet zone around the code, in modules.", kernel.RangeSchema(0, qr.MaxMargin, qr.DefaultMargin)),
		kernel.QueryParam("level", "Error correction: 7, 15, 25 or 30 % of the code may be damaged.", kernel.EnumSchema("M", "L", "Q", "H")),
		kernel.QueryParam("fg", "The colour of dark modules, darker than bg.", colorSchema("000000")),
		kernel.QueryParam("bg", "The background colour.", colorSchema("ffffff")),
		kernel.IfNoneMatchParam("the image"),
	)
}

// QROperation draws the code of a link.
func (ls *Links) QROperation(d kernel.Describer) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: Path + "/{code}/qr", OperationID: "link-qr", Summary: "Get the QR code of a link",
			Description: "The code contains the short URL with ?qr=1, which marks its clicks. Owners can get it whatever the state of the link; " +
				"visitors get it without a key at /{code}/qr, with the same parameters, while the link redirects. " +
				"Colours without enough contrast are refused, and so are sizes below 2 pixels per module in a PNG.",
			Parameters: qrParams(kernel.CodeParam(), kernel.DomainParam()), Responses: qrAnswers(d, 404),
		},
		Action: auth.ReadLink, Serve: (&aliases{ls}).drawLink,
	}
}

// colorSchema is RRGGBB.
func colorSchema(otherwise string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^[0-9A-Fa-f]{6}$", Default: otherwise}
}

func (as *aliases) drawLink(c *kernel.Call) error {
	o, err := qr.Parse(c.Query.Get)
	if err != nil {
		return fmt.Errorf("read the query: %w", err)
	}
	k, err := as.Key(c)
	if err != nil {
		return err
	}
	if _, err := as.Service.Get(c.R.Context(), c.Who, k); err != nil {
		return err
	}
	return as.draw(c, k, o)
}

// draw answers with the QR code of a short URL.
func (as *aliases) draw(c *kernel.Call, k link.Key, o qr.Options) error {
	negotiated := o.Format == qr.Any
	if negotiated {
		o.Format = qr.Preferred(c.R.Header["Accept"])
	}
	said := qr.Text(as.ShortURL(k))
	tag := o.Tag(said)
	fresh := qr.Matches(c.R.Header["If-None-Match"], tag)
	var picture []byte
	if !fresh {
		var err error
		if picture, err = as.Drawer.Draw(c.R.Context(), said, o); err != nil {
			return fmt.Errorf("draw the QR code of %s: %w", k, err)
		}
	}
	h := c.W.Header()
	kernel.CommonHeaders(h)
	h["Cache-Control"] = []string{"private, no-cache"} // whether the caller may see the link is asked each time
	h["Etag"] = []string{tag}
	h["Content-Security-Policy"] = []string{qr.ContentSecurityPolicy}
	if negotiated {
		h["Vary"] = []string{"Accept"}
	}
	if fresh {
		c.W.WriteHeader(http.StatusNotModified)
		return nil
	}
	h["Content-Type"] = []string{o.Format.MediaType()}
	h["Content-Length"] = []string{strconv.Itoa(len(picture))}
	c.W.WriteHeader(http.StatusOK)
	_, _ = c.W.Write(picture) // the client is gone: nobody is left to tell
	return nil
}
