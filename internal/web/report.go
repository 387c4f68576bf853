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
		moderation.Phishing: "Phishing or scam",
		moderation.Malware:  "Malware",
		moderation.Spam:     "Spam",
		moderation.Illegal:  "Illegal content",
		moderation.Other:    "Something else",
	}
	var all []category
	for _, c := range moderation.Categories() {
		all = append(all, category{c.String(), names[c], c.String() == chosen})
	}
	return all
}

// reviewForms are the forms with which links are reported, and decisions appealed.
type reviewForms struct {
	*site

	reports   *review.Reports
	appeals   *review.Appeals
	challenge review.Challenge
	keys      *auth.Keys
	domain    func(host string) (link.Domain, bool)
}

// report answers "/report": anybody may say what is wrong with a link. The answer is the
// same whether or not there is such a link.
func (f *reviewForms) report(w http.ResponseWriter, r *http.Request) {
	page := reportPage{shell: f.pages.shell("Report a link"), Link: field{Value: f.meant(r)}, Categories: categoryNames("")}
	switch {
	case r.Method != http.MethodPost && !isRead(r):
		f.methods(w, r)
	case !f.hosts.Load().Names().Own(r.Host):
		f.elsewhere(w, r, reportPath)
	case isRead(r):
		f.write(w, r, http.StatusOK, "report", page)
	default:
		if err := f.reports.MayReport(r.Context(), f.now(), f.stranger(r)); err != nil {
			status := f.blameStranger(w, r, err, &page.Problem, nil)
			page.Title = "Error: " + page.Title
			f.write(w, r, status, "report", page)
			return
		}
		values, ok := f.sent(w, r, reportPath)
		if !ok {
			return
		}
		page.Link.Value, page.Text.Value, page.Contact.Value = values.Get("link"), values.Get("text"), values.Get("contact")
		page.Categories = categoryNames(values.Get("category"))
		k, err := f.named(r, page.Link.Value)
		if err == nil {
			err = f.reports.Report(r.Context(), f.now(), f.stranger(r), review.Complaint{
				Link: k, Category: values.Get("category"), Text: page.Text.Value, Contact: strings.TrimSpace(page.Contact.Value),
			})
		}
		if err != nil {
			status := f.blameStranger(w, r, err, &page.Problem, map[string]*field{
				"link": &page.Link, "category": &page.Category, "text": &page.Text, "contact": &page.Contact,
			})
			page.Title = "Error: " + page.Title
			f.write(w, r, status, "report", page)
			return
		}
		f.say(w, r, http.StatusAccepted, "Thank you", "Your report was received. If the link exists, a moderator will review it.", "")
	}
}

// stranger is who sends a form of these pages.
func (f *reviewForms) stranger(r *http.Request) auth.Principal {
	return auth.Anonymous(f.clientAddr(r))
}

// meant returns the link that a visitor comes from: the one that the page before named, or
// the one whose page it was. Whether there is such a link is not asked.
func (f *reviewForms) meant(r *http.Request) string {
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
	return f.hosts.Load().ShortURL(link.Key{Domain: f.hosts.Load().Find(r.Host).Domain(), Code: link.Code(code)})
}

// sent returns what a form holds, unless another site sent it, it is none, or whoever
// sent it did not pass the challenge.
func (f *reviewForms) sent(w http.ResponseWriter, r *http.Request, path string) (url.Values, bool) {
	if f.origins.Check(r) != nil {
		f.say(w, r, http.StatusForbidden, "Cross-site request refused", "This form was sent from another site, so nothing was changed.", path)
		return nil, false
	}
	values, status := f.readForm(w, r)
	if status != http.StatusOK {
		f.say(w, r, status, "Invalid form", "The request does not match the form on this page.", path)
		return nil, false
	}
	switch err := f.challenge.Verify(r.Context(), r); {
	case errors.Is(err, review.ErrChallenge):
		f.say(w, r, http.StatusForbidden, "Challenge failed", "The challenge of this service was not passed.", path)
	case err != nil:
		w.Header().Set("Retry-After", "1")
		f.failure(r, http.StatusServiceUnavailable, err)
		f.say(w, r, http.StatusServiceUnavailable, "Try again in a moment", "Temporarily unavailable.", path)
	default:
		return values, true
	}
	return nil, false
}

// named returns the link that somebody typed in.
func (f *reviewForms) named(r *http.Request, typed string) (link.Key, error) {
	k, ok := review.ParseLink(typed, f.hosts.Load().Find(r.Host).Domain(), f.domain)
	if !ok {
		return k, &moderation.InvalidError{Field: "link", Reason: "not a short link of this service"}
	}
	return k, nil
}

// blameStranger puts what went wrong where it belongs and returns the status that says it.
func (f *reviewForms) blameStranger(w http.ResponseWriter, r *http.Request, err error, problem *string, fields map[string]*field) int {
	if wrong, ok := errors.AsType[*moderation.InvalidError](err); ok {
		if at := fields[wrong.Field]; at != nil {
			at.Error = sentence(wrong.Reason)
		} else {
			*problem = sentence(wrong.Reason)
		}
		return http.StatusBadRequest
	}
	if limited, ok := errors.AsType[*review.LimitedError](err); ok {
		wait := limited.Verdict.RetryAfter
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second))))
		*problem = "Too many requests from your network. Try again in " + waiting(wait) + "."
		return http.StatusTooManyRequests
	}
	if errors.Is(err, review.ErrBanned) {
		*problem = "Your network is banned. Contact the operator of this service."
		return http.StatusForbidden
	}
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, link.ErrFull):
		status, *problem = http.StatusInsufficientStorage, "The service is full."
	case errors.Is(err, link.ErrUnavailable), errors.Is(err, link.ErrUncertain), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		w.Header().Set("Retry-After", "1")
		status, *problem = http.StatusServiceUnavailable, "Temporarily unavailable. Try again in a moment."
	}
	id := f.failure(r, status, err)
	if status == http.StatusInternalServerError {
		*problem = "Internal server error. Error id: " + id + "."
	}
	return status
}
