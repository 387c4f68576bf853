package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/link"
)

const (
	mediaEvents = "text/event-stream"

	// livePath ends the paths of answers that go on until one of both sides ends them.
	livePath = "/clicks/live"

	// heartbeat keeps proxies from taking a silent stream for a dead one, tells us of
	// clients that have gone, and is when their rights are asked about again. A key that
	// another server revoked is known here for a second more (auth.Keys), so that its
	// streams end within five.
	heartbeat = 3 * time.Second

	// liveWrite is how long a client may take to read what is waiting for it.
	liveWrite = 10 * time.Second
)

// Streams reports whether the answer to a request may last for hours.
func Streams(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, livePath) }

// LiveClicks is one event of a stream.
type LiveClicks struct {
	Clicks uint64 `json:"clicks" doc:"What total_clicks of the statistics would be now."`
}

func liveDescription() string {
	return fmt.Sprintf("A key may have %d of these streams at once.", analytics.MaxWatchersEach)
}

func liveAnswers(d describer) map[string]*huma.Response {
	answers := d.answers(200, "Server-sent events: `event: clicks` with data of the schema LiveClicks at once and whenever the count moved, at most 2 s after the click, and a comment every 3 s. "+
		"The server ends the stream when it stops, and within 5 s when the key is revoked, expires, is rotated away or lacks the scope, or the link is deleted; ask again then.", nil, nil, 404, 429)
	// No type: tools that read a stream event by event would take it for that of an event.
	answers["200"].Content = map[string]*huma.MediaType{mediaEvents: {Schema: &huma.Schema{}}}
	d.schema(LiveClicks{})
	return answers
}

func (a *api) liveOperations(d describer) []*operation {
	return []*operation{{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: linksPath + "/{code}" + livePath, OperationID: "live-clicks", Summary: "Watch the clicks of a link",
			Description: liveDescription(), Parameters: []*huma.Param{codeParam(), domainParam()}, Responses: liveAnswers(d),
		},
		action: auth.ReadStats, serve: (*call).liveClicks,
	}}
}

func (c *call) liveClicks() error {
	k, err := c.key()
	if err != nil {
		return err
	}
	if err := c.api.links.Exists(c.r.Context(), c.who, k); err != nil {
		return err
	}
	return c.watch(k, func(who auth.Principal) error { return c.api.links.Exists(c.r.Context(), who, k) })
}

// entitled reports whether who asked could ask again now: an answer that goes on may not
// outlive the right to it. When nobody can say, it ends, too: whoever still may begins
// another. may is what else the operation asks of a caller.
func (c *call) entitled(may func(auth.Principal) error) bool {
	who, err := c.api.auth.Authenticate(c.r, c.who.Addr, c.api.now())
	return err == nil && who.KeyID == c.who.KeyID && auth.May(who, c.op.action, auth.Resource{}) == nil && may(who) == nil
}

// watch answers with what the clicks of a key come to, until the client goes, its right
// ends or the server does.
func (c *call) watch(k link.Key, may func(auth.Principal) error) error {
	w, err := c.api.live.Watch(k, c.who.KeyID)
	if err != nil {
		return fmt.Errorf("watch %s: %w", k, err)
	}
	defer w.Close()
	counts, err := c.api.stats.Clicks(c.r.Context(), []link.Key{k})
	if err != nil {
		return fmt.Errorf("watch %s: %w", k, err)
	}
	s := c.stream()
	if !s.begin() || c.r.Method == http.MethodHead || !s.tell(counts[0]) {
		return nil // the client has gone, and nobody is left to tell
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for last := counts[0]; ; {
		alive := true
		select {
		case <-c.r.Context().Done():
			return nil
		case <-w.Ended():
			return nil
		case <-beat.C:
			alive = c.entitled(may) && s.write(":\n\n")
		case now := <-w.Counts():
			if now != last {
				last, alive = now, s.tell(now)
			}
		}
		if !alive {
			return nil
		}
	}
}

// stream is an answer of server-sent events.
type stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func (c *call) stream() stream { return stream{c.w, http.NewResponseController(c.w)} }

// begin sends the head; after it, nothing but events can be said.
func (s stream) begin() bool {
	// The server's bound of a request's reading would end the stream: net/http reads on
	// to learn that a client has gone. A writer without deadlines is a test's.
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return false
	}
	h := s.w.Header()
	h["Content-Type"] = []string{mediaEvents}
	h["X-Accel-Buffering"] = []string{"no"} // nginx would hold events back
	commonHeaders(h)
	s.w.WriteHeader(http.StatusOK)
	return true
}

func (s stream) tell(n uint64) bool {
	text, err := json.Marshal(LiveClicks{n})
	return err == nil && s.write("event: clicks\ndata: "+string(text)+"\n\n")
}

// write sends text now, and reports whether the client is still there.
func (s stream) write(text string) bool {
	if err := s.rc.SetWriteDeadline(time.Now().Add(liveWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return false
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	return s.rc.Flush() == nil
}
