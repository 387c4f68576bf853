package statistics

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
	"curt/internal/httpapi/kernel"
	"curt/internal/httpapi/links"
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
	Clicks uint64 `json:"clicks" doc:"The current total_clicks."`
}

func liveDescription() string {
	return fmt.Sprintf("At most %d concurrent streams per key.", analytics.MaxWatchersEach)
}

func liveAnswers(d kernel.Describer) map[string]*huma.Response {
	answers := d.Answers(200, "Server-sent events: `event: clicks` with data of the schema LiveClicks immediately and after each change, within 2 s of the click, and a comment every 3 s. "+
		"The server ends the stream on shutdown, and within 5 s if the key expires, is revoked, rotated or loses the scope, or the link is deleted; reconnect then.", nil, nil, 404, 429)
	// No type: tools that read a stream event by event would take it for that of an event.
	answers["200"].Content = map[string]*huma.MediaType{mediaEvents: {Schema: &huma.Schema{}}}
	d.Schema(LiveClicks{})
	return answers
}

func (st *Statistics) liveOperation(d kernel.Describer) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: links.Path + "/{code}" + livePath, OperationID: "live-clicks", Summary: "Stream the click count of a link",
			Description: liveDescription(), Parameters: []*huma.Param{kernel.CodeParam(), kernel.DomainParam()}, Responses: liveAnswers(d),
		},
		Action: auth.ReadStats, Serve: st.Links.Of(st.liveClicks),
	}
}

func (st *Statistics) liveClicks(c *kernel.Call, k link.Key) error {
	if err := st.Links.Service.Exists(c.R.Context(), c.Who, k); err != nil {
		return err
	}
	return st.watch(c, k, func(who auth.Principal) error { return st.Links.Service.Exists(c.R.Context(), who, k) })
}

// watch answers with what the clicks of a key come to, until the client goes, its right
// ends or the server does.
func (st *Statistics) watch(c *kernel.Call, k link.Key, may func(auth.Principal) error) error {
	w, err := st.Live.Watch(k, c.Who.KeyID)
	if err != nil {
		return fmt.Errorf("watch %s: %w", k, err)
	}
	defer w.Close()
	counts, err := st.Links.Stats.Clicks(c.R.Context(), []link.Key{k})
	if err != nil {
		return fmt.Errorf("watch %s: %w", k, err)
	}
	s := stream{c.W, http.NewResponseController(c.W)}
	if !s.begin() || c.R.Method == http.MethodHead || !s.tell(counts[0]) {
		return nil // the client has gone, and nobody is left to tell
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for last := counts[0]; ; {
		alive := true
		select {
		case <-c.R.Context().Done():
			return nil
		case <-w.Ended():
			return nil
		case <-beat.C:
			alive = c.Entitled(may) && s.write(":\n\n")
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
	kernel.CommonHeaders(h)
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
