package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/review"
)

// appealPage is the form of "/appeal", or what became of an appeal.
type appealPage struct {
	shell
	Problem           string // what is wrong and no field's
	Link, Reason, Key field
	Case              string // of a refused create, instead of the link
	Keys              bool   // keys are taken at this address

	Made    string    // where the answer will be read, of an appeal that was just made
	Shown   string    // the short URL, or the case, of an appeal that is shown
	At      time.Time // when it was made
	Open    bool
	Outcome string   // what was decided, in words
	Answer  []string // lines
}

// appeal answers "/appeal": the owner of a link says why a decision about it is wrong,
// and reads the answer.
func (f *reviewForms) appeal(w http.ResponseWriter, r *http.Request) {
	page := appealPage{shell: f.pages.shell("Appeal a decision"), Keys: f.api}
	switch token := r.URL.Query().Get("token"); {
	case r.Method != http.MethodPost && !isRead(r):
		f.methods(w, r)
	case isRead(r) && token != "":
		f.showAppeal(w, r, page, token)
	case !f.hosts.Load().Names().Own(r.Host):
		f.elsewhere(w, r, appealPath)
	case isRead(r):
		if id, err := link.ParseID(r.URL.Query().Get("case")); err == nil {
			page.Case = id.String()
		} else {
			page.Link.Value = f.meant(r)
		}
		f.write(w, r, http.StatusOK, "appeal", page)
	default:
		f.makeAppeal(w, r, page)
	}
}

// makeAppeal takes the form.
func (f *reviewForms) makeAppeal(w http.ResponseWriter, r *http.Request, page appealPage) {
	if err := f.appeals.MayAppeal(r.Context(), f.now(), f.stranger(r)); err != nil {
		status := f.blameStranger(w, r, err, &page.Problem, nil)
		page.Title = "Error: " + page.Title
		f.write(w, r, status, "appeal", page)
		return
	}
	values, ok := f.sent(w, r, appealPath)
	if !ok {
		return
	}
	page.Link.Value, page.Reason.Value = values.Get("link"), values.Get("reason")
	page.Case = values.Get("case")
	token, err := f.takeAppeal(r, &page, strings.TrimSpace(values.Get("key")))
	if err != nil {
		page.Title = "Error: " + page.Title
		f.write(w, r, f.blameOwner(w, r, &page, err), "appeal", page)
		return
	}
	page.Title, page.Made = "Appeal received", f.hosts.Load().Base()+appealPath+"?token="+token
	w.Header()["Referrer-Policy"] = []string{"no-referrer"}
	f.write(w, r, http.StatusAccepted, "appeal", page)
}

// takeAppeal stores the appeal for what the form names.
func (f *reviewForms) takeAppeal(r *http.Request, page *appealPage, key string) (token string, err error) {
	var k link.Key
	id, invalid := link.ParseID(page.Case)
	switch {
	case page.Case == "":
		k, err = f.named(r, page.Link.Value)
	case invalid != nil:
		page.Case, err = "", moderation.ErrNoDestination
	}
	if err != nil {
		return "", err
	}
	who, err := f.owner(r, key)
	switch {
	case err != nil:
		return "", err
	case page.Case != "":
		return f.appeals.AppealCase(r.Context(), f.now(), who, id, page.Reason.Value)
	}
	return f.appeals.Appeal(r.Context(), f.now(), who, k, page.Reason.Value)
}

// owner is who appeals: a key where one is shown, else a stranger.
func (f *reviewForms) owner(r *http.Request, key string) (auth.Principal, error) {
	who := f.stranger(r)
	if key == "" || !f.api {
		return who, nil
	}
	known, err := f.keys.Identify(r.Context(), key, f.now())
	known.Addr = who.Addr
	return known, err
}

// blameOwner is blameStranger for what only an owner meets.
func (f *reviewForms) blameOwner(w http.ResponseWriter, r *http.Request, page *appealPage, err error) int {
	if errors.Is(err, moderation.ErrNoDestination) {
		page.Problem = "Case not found, or it requires an API key of the workspace that it belongs to."
		return http.StatusNotFound
	}
	if page.Case != "" && errors.Is(err, moderation.ErrAppealed) {
		page.Problem = "An appeal for this case is already pending."
		return http.StatusConflict
	}
	if page.Case != "" && (errors.Is(err, moderation.ErrAnswered) || errors.Is(err, review.ErrNothingToAppeal)) {
		page.Problem = "A moderator has decided this case."
		return http.StatusConflict
	}
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		page.Key.Error = "Invalid or revoked API key."
		return http.StatusForbidden
	case errors.Is(err, auth.ErrForbidden):
		page.Key.Error = "This key can't update links."
		return http.StatusForbidden
	case errors.Is(err, link.ErrNotFound):
		page.Link.Error = "Link not found, or it requires the API key that created it."
		return http.StatusNotFound
	}
	switch {
	case errors.Is(err, moderation.ErrAppealed):
		page.Link.Error = "An appeal for this link is already pending."
	case errors.Is(err, moderation.ErrAnswered):
		page.Link.Error = "This appeal was answered. You can appeal again after a new decision."
	case errors.Is(err, review.ErrNothingToAppeal):
		page.Link.Error = "There is no decision against this link."
	}
	if page.Link.Error != "" {
		return http.StatusConflict
	}
	return f.blameStranger(w, r, err, &page.Problem, map[string]*field{"link": &page.Link, "reason": &page.Reason})
}

// showAppeal shows what became of an appeal to whoever has its token.
func (f *reviewForms) showAppeal(w http.ResponseWriter, r *http.Request, page appealPage, token string) {
	w.Header()["Referrer-Policy"] = []string{"no-referrer"}
	a, err := f.appeals.AppealBy(r.Context(), token)
	switch {
	case errors.Is(err, moderation.ErrNoAppeal):
		f.say(w, r, http.StatusNotFound, "Appeal not found", "There is no appeal at this URL. Check the spelling.", "")
		return
	case errors.Is(err, link.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		w.Header().Set("Retry-After", "1")
		f.failure(r, http.StatusServiceUnavailable, err)
		f.say(w, r, http.StatusServiceUnavailable, "Try again in a moment", "The appeal is temporarily unavailable.", "")
		return
	case err != nil:
		f.failure(r, http.StatusInternalServerError, err)
		f.say(w, r, http.StatusInternalServerError, "Internal server error", "The appeal could not be loaded.", "")
		return
	}
	page.Title, page.Shown, page.At, page.Open = "Your appeal", f.hosts.Load().ShortURL(a.Link.Key), a.At, a.IsOpen()
	if a.Link.IsDestination() {
		page.Shown = "case " + a.Link.ID.String()
	}
	if !page.Open {
		page.Outcome = became(&a)
		for line := range strings.Lines(a.Answer) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				page.Answer = append(page.Answer, line)
			}
		}
	}
	f.write(w, r, http.StatusOK, "appeal", page)
}

// became says what the answer to an appeal means to visitors today.
func became(a *review.Appealed) string {
	switch {
	case a.Link.IsDestination() && moderation.Allows(a.Safety):
		return "You can create the link now."
	case a.Link.IsDestination():
		return "Links to this destination stay blocked."
	case a.AnsweredBy == moderation.ActorRetention:
		return "The link expired, and its content was removed before a decision."
	case a.Now == nil:
		return "The link was deleted."
	case a.Now.Safety == a.Safety:
		return outcome(a.Safety)
	case a.Banned:
		return "The decision about this link was: " + a.Safety.String() + ". A ban overrides it. " + outcome(a.Now.Safety)
	}
	return "The decision was: " + a.Safety.String() + ". A later decision replaced it. " + outcome(a.Now.Safety)
}

// outcome says what a decision means to visitors.
func outcome(s link.Safety) string {
	switch s {
	case link.Clean:
		return "The link works again."
	case link.Warn, link.Quarantined:
		return "Visitors of the link see a warning."
	case link.Blocked:
		return "The link stays blocked."
	case link.Legal:
	}
	return "The link stays blocked for legal reasons."
}
