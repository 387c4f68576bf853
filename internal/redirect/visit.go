package redirect

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"curt/internal/clicks"
	"curt/internal/link"
)

// visit is the scratch space of one click: a Recorder takes bytes, and a pooled
// buffer turns the strings of net/http into bytes without an allocation each.
type visit struct {
	raw clicks.Raw
	buf []byte
}

// maxScratch keeps a request with monstrous headers from staying in the pool.
const maxScratch = 16 << 10

// record tells the Recorder about an answered request.
func (h *Handler) record(r *http.Request, client netip.Addr, p Place, code link.Code, outcome clicks.Outcome, flags clicks.Flags) {
	v, _ := h.visits.Get().(*visit)
	v.raw = clicks.Raw{
		Time: time.Now().UnixMilli(), Domain: p.Bytes(), Outcome: outcome, Flags: flags,
		Addr: client,
	}
	if !link.ValidCode(code) {
		code = "" // a path, of any length, is no code
	}
	v.fill(string(code), first(r.Header, "User-Agent"), first(r.Header, "Referer"), first(r.Header, "Accept-Language"), r.URL.RawQuery)
	h.recorder.Record(&v.raw)
	v.raw = clicks.Raw{}
	if cap(v.buf) <= maxScratch {
		h.visits.Put(v)
	}
}

// fill copies the texts into one buffer, which grows at most once.
func (v *visit) fill(code, agent, referrer, language, query string) {
	n := len(code) + len(agent) + len(referrer) + len(language) + len(query)
	if cap(v.buf) < n {
		v.buf = make([]byte, 0, max(n, 1024))
	}
	v.buf = v.buf[:0]
	v.raw.Code = v.add(code)
	v.raw.UserAgent = v.add(agent)
	v.raw.Referrer = v.add(referrer)
	v.raw.Language = v.add(language)
	v.raw.Query = v.add(query)
}

func (v *visit) add(s string) []byte {
	from := len(v.buf)
	v.buf = append(v.buf, s...)
	return v.buf[from:len(v.buf):len(v.buf)]
}

// first is Header.Get for a name in canonical form.
func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func flagsOf(r *http.Request) clicks.Flags {
	var f clicks.Flags
	if r.Method == http.MethodHead {
		f |= clicks.Head
	}
	if prefetches(r.Header) {
		f |= clicks.Prefetch
	}
	if ViaQR(r.URL.RawQuery) {
		f |= clicks.ViaQR
	}
	return f
}

// prefetches reports whether the browser says that nobody asked for this yet:
// "Sec-Purpose: prefetch;prerender", or "Purpose" and "X-Moz" before it existed.
func prefetches(h http.Header) bool {
	for _, name := range [...]string{"Sec-Purpose", "Purpose", "X-Moz"} {
		if slices.ContainsFunc(h[name], AnnouncesPrefetch) {
			return true
		}
	}
	return false
}
