package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/review"
)

// reportPath and appealPath are reserved words: no link has them.
const (
	reportPath = "/report"
	appealPath = "/appeal"
)

// reportPage is the form of "/report".
type reportPage struct {
	shell
	Problem                       string // what is wrong and no field's
	Link, Category, Text, Contact field
	Categories                    []category
}

// category is what may be wrong with a link, as a choice of the form.
type category struct {
	Value, Name string
	Chosen      bool
}

// categoryNames says what the categories of reports mean to people.
func categoryNames(chosen string) []category {
	names := map[moderation.Category]string{
		moderation.Phishing: "It asks for passwords, codes or money under a false name",
		moderation.Malware:  "It makes me download something harmful",
		moderation.Spam:     "It came as spam",
		moderation.Illegal:  "It leads to something illegal",
		moderation.Other:    "Something else",
	}
	var all []category
	for _, c := range moderation.Categories() {
		all = append(all, category{c.String(), names[c], c.String() == chosen})
	}
	return all
}

// report answers "/report": anybody may say what is wrong with a link. The answer is the
// same whether or not there is such a link.
func (h *Handler) report(w http.ResponseWriter, r *http.Request) {
	page := reportPage{shell: h.Pages.shell("Report a link"), Link: field{Value: h.meant(r)}, Categories: categoryNames("")}
	switch {
	case r.Method != http.MethodPost && !isRead(r):
		h.methods(w, r)
	case !h.Hosts.Own(r.Host):
		h.elsewhere(w, r, reportPath)
	case isRead(r):
		h.write(w, r, http.StatusOK, "report", page)
	default:
		if err := h.Review.MayReport(r.Context(), h.Now(), h.stranger(r)); err != nil {
			status := h.blameStranger(w, r, err, &page.Problem, nil)
			page.Title = "Error: " + page.Title
			h.write(w, r, status, "report", page)
			return
		}
		values, ok := h.sent(w, r, reportPath)
		if !ok {
			return
		}
		page.Link.Value, page.Text.Value, page.Contact.Value = values.Get("link"), values.Get("text"), values.Get("contact")
		page.Categories = categoryNames(values.Get("category"))
		k, err := h.named(r, page.Link.Value)
		if err == nil {
			err = h.Review.Report(r.Context(), h.Now(), h.stranger(r), review.Complaint{
				Link: k, Category: values.Get("category"), Text: page.Text.Value, Contact: strings.TrimSpace(page.Contact.Value),
			})
		}
		if err != nil {
			status := h.blameStranger(w, r, err, &page.Problem, map[string]*field{
				"link": &page.Link, "category": &page.Category, "text": &page.Text, "contact": &page.Contact,
			})
			page.Title = "Error: " + page.Title
			h.write(w, r, status, "report", page)
			return
		}
		h.say(w, r, http.StatusAccepted, "Thank you", "Your report was taken. If there is such a link, a moderator will look at it.", "")
	}
}

// stranger is who sends a form of these pages.
func (h *Handler) stranger(r *http.Request) auth.Principal { return auth.Anonymous(h.ClientAddr(r)) }

// meant returns the link that a visitor comes from: the one that the page before named, or
// the one whose page it was. Whether there is such a link is not asked.
func (h *Handler) meant(r *http.Request) string {
	code := r.URL.Query().Get("code")
	if code == "" {
		from, err := url.Parse(r.Header.Get("Referer"))
		if err != nil || from.Host != r.Host {
			return ""
		}
		code = strings.TrimSuffix(strings.TrimPrefix(from.Path, "/"), "+")
	}
	if !link.ValidCode(code) || "/"+code == reportPath || "/"+code == appealPath {
		return ""
	}
	return h.ShortURL(link.Key{Domain: h.Visitors.At(r.Host).Domain(), Code: link.Code(code)})
}

// elsewhere tells who comes under a name that is not this server's where the form is
// taken: a page of that name could send it for its visitors.
func (h *Handler) elsewhere(w http.ResponseWriter, r *http.Request, path string) {
	h.say(w, r, http.StatusMisdirectedRequest, "Another address", "This is done at the address of this service: "+h.BaseURL+path, h.BaseURL+path)
}

// sent returns what a form holds, unless another site sent it, it is none, or whoever
// sent it did not pass the challenge.
func (h *Handler) sent(w http.ResponseWriter, r *http.Request, path string) (url.Values, bool) {
	if h.origins.Check(r) != nil {
		h.say(w, r, http.StatusForbidden, "Sent from another site", "This form was sent from a page of another site, so nothing was done.", path)
		return nil, false
	}
	values, status := h.readForm(w, r)
	if status != http.StatusOK {
		h.say(w, r, status, "The form cannot be read", "What was sent is not what this page's form sends.", path)
		return nil, false
	}
	switch err := h.Challenge.Verify(r.Context(), r); {
	case errors.Is(err, review.ErrChallenge):
		h.say(w, r, http.StatusForbidden, "Not taken", "The challenge of this service was not passed.", path)
	case err != nil:
		w.Header().Set("Retry-After", "1")
		h.failure(r, http.StatusServiceUnavailable, err)
		h.say(w, r, http.StatusServiceUnavailable, "Try again in a moment", "This cannot be done just now.", path)
	default:
		return values, true
	}
	return nil, false
}

// named returns the link that somebody typed in.
func (h *Handler) named(r *http.Request, typed string) (link.Key, error) {
	k, ok := review.ParseLink(typed, h.Visitors.At(r.Host).Domain(), h.Links.Domain)
	if !ok {
		return k, &moderation.InvalidError{Field: "link", Reason: "this is no short link of this service"}
	}
	return k, nil
}

// blameStranger puts what went wrong where it belongs and returns the status that says it.
func (h *Handler) blameStranger(w http.ResponseWriter, r *http.Request, err error, problem *string, fields map[string]*field) int {
	if wrong, ok := errors.AsType[*moderation.InvalidError](err); ok {
		if f := fields[wrong.Field]; f != nil {
			f.Error = sentence(wrong.Reason)
		} else {
			*problem = sentence(wrong.Reason)
		}
		return http.StatusBadRequest
	}
	if limited, ok := errors.AsType[*review.LimitedError](err); ok {
		wait := limited.Verdict.RetryAfter
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second))))
		*problem = "Many of these came from your network. Wait " + waiting(wait) + " and send this again."
		return http.StatusTooManyRequests
	}
	if errors.Is(err, review.ErrBanned) {
		*problem = "Nothing is taken from your network. Ask the operator of this service."
		return http.StatusForbidden
	}
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, link.ErrFull):
		status, *problem = http.StatusInsufficientStorage, "There is no room for more."
	case errors.Is(err, link.ErrUnavailable), errors.Is(err, link.ErrUncertain), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		w.Header().Set("Retry-After", "1")
		status, *problem = http.StatusServiceUnavailable, "This cannot be done just now. Send it again in a moment."
	}
	id := h.failure(r, status, err)
	if status == http.StatusInternalServerError {
		*problem = "The server failed. It was logged as " + id + "."
	}
	return status
}
