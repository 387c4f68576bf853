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
	Keys              bool // keys are taken at this address

	Made    string    // where the answer will be read, of an appeal that was just made
	Shown   string    // the short URL of an appeal that is shown
	At      time.Time // when it was made
	Open    bool
	Outcome string   // what was decided, in words
	Answer  []string // lines
}

// appeal answers "/appeal": the owner of a link says why a decision about it is wrong,
// and reads the answer.
func (h *Handler) appeal(w http.ResponseWriter, r *http.Request) {
	page := appealPage{shell: h.Pages.shell("Appeal for a link"), Keys: h.API}
	switch token := r.URL.Query().Get("token"); {
	case r.Method != http.MethodPost && !isRead(r):
		h.methods(w, r)
	case isRead(r) && token != "":
		h.showAppeal(w, r, page, token)
	case !h.Hosts.Own(r.Host):
		h.elsewhere(w, r, appealPath)
	case isRead(r):
		page.Link.Value = h.meant(r)
		h.write(w, r, http.StatusOK, "appeal", page)
	default:
		h.makeAppeal(w, r, page)
	}
}

// makeAppeal takes the form.
func (h *Handler) makeAppeal(w http.ResponseWriter, r *http.Request, page appealPage) {
	if err := h.Review.MayAppeal(r.Context(), h.Now(), h.stranger(r)); err != nil {
		status := h.blameStranger(w, r, err, &page.Problem, nil)
		page.Title = "Error: " + page.Title
		h.write(w, r, status, "appeal", page)
		return
	}
	values, ok := h.sent(w, r, appealPath)
	if !ok {
		return
	}
	page.Link.Value, page.Reason.Value = values.Get("link"), values.Get("reason")
	k, err := h.named(r, page.Link.Value)
	var who auth.Principal
	if err == nil {
		who, err = h.owner(r, strings.TrimSpace(values.Get("key")))
	}
	token := ""
	if err == nil {
		token, err = h.Review.Appeal(r.Context(), h.Now(), who, k, page.Reason.Value)
	}
	if err != nil {
		page.Title = "Error: " + page.Title
		h.write(w, r, h.blameOwner(w, r, &page, err), "appeal", page)
		return
	}
	page.Title, page.Made = "Your appeal was taken", h.BaseURL+appealPath+"?token="+token
	w.Header()["Referrer-Policy"] = []string{"no-referrer"}
	h.write(w, r, http.StatusAccepted, "appeal", page)
}

// owner is who appeals: a key where one is shown, else a stranger.
func (h *Handler) owner(r *http.Request, key string) (auth.Principal, error) {
	who := h.stranger(r)
	if key == "" || !h.API {
		return who, nil
	}
	known, err := h.Keys.Identify(r.Context(), key, h.Now())
	known.Addr = who.Addr
	return known, err
}

// blameOwner is blameStranger for what only an owner meets.
func (h *Handler) blameOwner(w http.ResponseWriter, r *http.Request, page *appealPage, err error) int {
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		page.Key.Error = "This is no key of this service, or none any more."
		return http.StatusForbidden
	case errors.Is(err, auth.ErrForbidden):
		page.Key.Error = "This key may not change links."
		return http.StatusForbidden
	case errors.Is(err, link.ErrNotFound):
		page.Link.Error = "There is no such link, or it was made with an API key, which is needed here."
		return http.StatusNotFound
	}
	switch {
	case errors.Is(err, moderation.ErrAppealed):
		page.Link.Error = "An appeal for this link waits for its answer."
	case errors.Is(err, moderation.ErrAnswered):
		page.Link.Error = "The appeal for this link was answered. Another one waits for another decision."
	case errors.Is(err, review.ErrNothingToAppeal):
		page.Link.Error = "Nothing was decided against this link."
	}
	if page.Link.Error != "" {
		return http.StatusConflict
	}
	return h.blameStranger(w, r, err, &page.Problem, map[string]*field{"link": &page.Link, "reason": &page.Reason})
}

// showAppeal shows what became of an appeal to whoever has its token.
func (h *Handler) showAppeal(w http.ResponseWriter, r *http.Request, page appealPage, token string) {
	w.Header()["Referrer-Policy"] = []string{"no-referrer"}
	a, err := h.Review.AppealBy(r.Context(), token)
	switch {
	case errors.Is(err, moderation.ErrNoAppeal):
		h.say(w, r, http.StatusNotFound, "No such appeal", "This address shows no appeal. It may be mistyped.", "")
		return
	case errors.Is(err, link.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		w.Header().Set("Retry-After", "1")
		h.failure(r, http.StatusServiceUnavailable, err)
		h.say(w, r, http.StatusServiceUnavailable, "Try again in a moment", "The appeal cannot be read just now.", "")
		return
	case err != nil:
		h.failure(r, http.StatusInternalServerError, err)
		h.say(w, r, http.StatusInternalServerError, "The server failed", "The appeal cannot be read.", "")
		return
	}
	page.Title, page.Shown, page.At, page.Open = "Your appeal", h.ShortURL(a.Link.Key), a.At, a.IsOpen()
	if !page.Open {
		page.Outcome = became(&a)
		for line := range strings.Lines(a.Answer) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				page.Answer = append(page.Answer, line)
			}
		}
	}
	h.write(w, r, http.StatusOK, "appeal", page)
}

// became says what the answer to an appeal means to visitors today.
func became(a *review.Appealed) string {
	switch {
	case a.Now == nil:
		return "The link was deleted."
	case a.Now.Safety == a.Safety:
		return outcome(a.Safety)
	case a.Banned:
		return "The decision about this link itself was: " + a.Safety.String() + ". But a ban stands above that. " + outcome(a.Now.Safety)
	}
	return "The decision was: " + a.Safety.String() + ". Something else was decided since. " + outcome(a.Now.Safety)
}

// outcome says what a decision means to visitors.
func outcome(s link.Safety) string {
	switch s {
	case link.Clean:
		return "The link works again."
	case link.Warn, link.Quarantined:
		return "Visitors of the link are warned."
	case link.Blocked:
		return "The link stays blocked."
	case link.Legal:
	}
	return "The link stays down for legal reasons."
}
