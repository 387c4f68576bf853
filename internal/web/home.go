package web

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/qr"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

// home is the page of "/".
type home struct {
	shell
	Made *made // the link that was just made

	Dashboard bool // there is one at this address

	// The form, where links may be made here.
	Open               bool
	Problem            string // what is wrong and no field's
	Appeal             string // where to appeal against that
	URL, Alias, Expiry field
	Ends               []end

	// Where they may not.
	Why, Elsewhere string
}

// field is what was typed, and what is wrong with it.
type field struct{ Value, Error string }

// end is a choice of when a link ends.
type end struct {
	Seconds int64
	Name    string
	Chosen  bool
}

// made is a link that was just made.
type made struct {
	ShortURL, Preview, Download string
	Destination                 *destination
	Expires                     *time.Time
	Warned                      bool          // visitors see a warning first
	Picture                     template.HTML // what internal/qr drew
}

// ends are the choices, the first for who chooses nothing.
func ends() []end {
	const hour, day = 60 * 60, 24 * 60 * 60
	return []end{
		{0, "Never", false},
		{hour, "In 1 hour", false},
		{day, "In 1 day", false},
		{7 * day, "In 1 week", false},
		{30 * day, "In 30 days", false},
		{365 * day, "In 1 year", false},
	}
}

// homePages create links with a form.
type homePages struct {
	*site

	links        *linkservice.Service
	auth         auth.Authenticator
	drawer       *qr.Drawer
	hasDashboard bool
}

// serve answers "/".
func (h *homePages) serve(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		page := h.form()
		if _, status := h.admit(r, &page); status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", auth.Challenge)
			h.write(w, r, status, "home", page)
			return
		}
		h.write(w, r, http.StatusOK, "home", page)
	case http.MethodPost:
		h.make(w, r)
	default:
		h.methods(w, r)
	}
}

func (h *homePages) form() home {
	page := home{shell: h.pages.shell("Shorten a link"), Open: true, Ends: ends(), Dashboard: h.hasDashboard}
	page.Index = true
	return page
}

// admit finds who asks. Who may make no link here is told why by the page, which is
// closed then, and by the status.
func (h *homePages) admit(r *http.Request, page *home) (who auth.Principal, status int) {
	who, err := h.auth.Authenticate(r, h.clientAddr(r), h.now())
	switch {
	case !h.api:
		status, page.Why = http.StatusForbidden, "Links can't be created on this host."
	case err != nil:
		status, page.Why = http.StatusUnauthorized, "Invalid or revoked API key."
	case auth.May(who, auth.CreateLink, auth.Resource{}) != nil:
		status, page.Why = http.StatusForbidden, "Creating links requires an API key. Use the API or the command line."
	case !h.hosts.Load().Names().Own(r.Host):
		status, page.Why, page.Elsewhere = http.StatusMisdirectedRequest, "Create links at the address of this service:", h.hosts.Load().Base()+"/"
	default:
		return who, http.StatusOK
	}
	page.Open, page.Title = false, "curt"
	return who, status
}

// make makes the link that a form asks for.
func (h *homePages) make(w http.ResponseWriter, r *http.Request) {
	if h.origins.Check(r) != nil {
		h.say(w, r, http.StatusForbidden, "Cross-site request refused", "This form was sent from another site, so no link was created.", "/")
		return
	}
	page := h.form()
	who, status := h.admit(r, &page)
	if status != http.StatusOK {
		h.write(w, r, status, "home", page)
		return
	}
	if err := h.links.Afford(r.Context(), h.now(), who, ""); err != nil {
		status := h.explain(w, r, &page, err)
		h.again(w, r, status, page)
		return
	}
	values, status := h.readForm(w, r)
	if status != http.StatusOK {
		h.say(w, r, status, "Invalid form", "The request does not match the form on this page.", "/")
		return
	}
	req := page.fill(values)
	if page.bad() {
		h.again(w, r, http.StatusBadRequest, page)
		return
	}
	made, err := h.links.Create(r.Context(), h.now(), shorten.Cause{Principal: who}, req)
	if err != nil {
		status := h.explain(w, r, &page, err)
		h.again(w, r, status, page)
		return
	}
	page.Title, page.Index = "Your short link", false
	page.Made = h.show(r.Context(), made.Link)
	h.write(w, r, http.StatusCreated, "home", page)
}

// again shows the form with what was typed and what is wrong with it.
func (h *homePages) again(w http.ResponseWriter, r *http.Request, status int, page home) {
	page.Title, page.Index = "Error: "+page.Title, false
	h.write(w, r, status, "home", page)
}

// show describes a link. A code that cannot be drawn now is left out: the link is made.
func (h *homePages) show(ctx context.Context, l link.Link) *made {
	short := h.hosts.Load().ShortURL(l.Key)
	m := &made{ShortURL: short, Preview: short + "+", Download: short + "/qr?format=png&size=1024", Destination: destinationOf(l.Destination), Warned: l.Safety != link.Clean}
	if !l.Expires.IsZero() {
		m.Expires = &l.Expires
	}
	o := qr.Defaults()
	o.Format = qr.SVG
	if picture, err := h.drawer.Draw(ctx, qr.Text(short), o); err == nil {
		m.Picture = template.HTML(picture) //nolint:gosec // numbers and hexadecimal digits that internal/qr wrote
	}
	return m
}

// sentence makes one of a reason.
func sentence(reason string) string {
	if reason == "" {
		return ""
	}
	if c := reason[0]; 'a' <= c && c <= 'z' {
		reason = string(c-'a'+'A') + reason[1:]
	}
	if strings.HasSuffix(reason, ".") {
		return reason
	}
	return reason + "."
}

// waiting says for how long, as people count.
func waiting(d time.Duration) string {
	switch s := int((d + time.Second - 1) / time.Second); {
	case s <= 1:
		return "1 second"
	case s < 120:
		return fmt.Sprintf("%d seconds", s)
	case s < 2*60*60:
		return fmt.Sprintf("%d minutes", (s+59)/60)
	default:
		return fmt.Sprintf("%d hours", (s+3599)/3600)
	}
}
