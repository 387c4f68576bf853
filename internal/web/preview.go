package web

import (
	"net/http"

	"curt/internal/link"
	"curt/internal/redirect"
)

// preview is the page of "/{code}+".
type preview struct {
	shell
	ShortURL, Follow string
	Destination      *destination
	Fallback         bool // the link is over, and leads on all the same
	Hidden           bool // only the host is shown
	Report           string
}

// preview shows where a link leads, for as long as it leads a visitor somewhere;
// otherwise what the visitor would be told. It counts no click, and spends none. Of a
// link that may be followed a number of times the address is the visit itself: whoever
// only looks is shown the host.
func (l *LinkPages) preview(w http.ResponseWriter, r *http.Request, code link.Code) {
	target, out := l.cfg.Visitors.Peek(r, code)
	if out.Problem != redirect.NoProblem {
		l.cfg.Visitors.Refuse(w, r, out)
		return
	}
	short := l.cfg.Hosts.Load().ShortURL(link.Key{Domain: l.cfg.Hosts.Load().Find(r.Host).Domain(), Code: code})
	p := preview{
		shell: l.cfg.Pages.shell("Link preview"), ShortURL: short, Follow: short,
		Destination: destinationOf(out.Location), Fallback: target.At(l.cfg.Now()) != link.StateLive, Report: reportPath + "?code=" + string(code),
	}
	if target.Limited && !p.Fallback {
		p.Hidden, p.Destination.After = true, "/…"
	}
	w.Header()["X-Robots-Tag"] = []string{"noindex"}
	l.cfg.Pages.write(w, r, l.cfg.Log, http.StatusOK, "preview", p)
}
