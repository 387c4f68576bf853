package history_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// request is one request to the API. Times are those since the history began.
type request struct {
	asked
	told

	client    int
	call, ret time.Duration
}

// sight is what a visitor was shown.
type sight int

const (
	led     sight = iota // 302
	off                  // 410
	blocked              // 403
	absent               // 404
)

func (s sight) String() string { return [...]string{"led on", "off", "blocked", "absent"}[s] }

// visit is one answer to a visitor.
type visit struct {
	server    int
	key       string
	saw       sight
	to        string // where it led
	call, ret time.Duration
}

// history is what all clients were told.
type history struct {
	requests []request
	visits   []visit
	faults   []porcupine.Annotation
}

// operations are the requests as porcupine wants them: what has an open outcome does not
// end before the history, unless somebody was shown it.
func (h *history) operations() (ops []porcupine.Operation) {
	end := time.Duration(0)
	for i := range h.requests {
		end = max(end, h.requests[i].ret)
	}
	known := h.facts()
	for i := range h.requests {
		q := h.requests[i]
		if q.result == unknown {
			last, matters := known[q.key].open(&q)
			if !matters {
				continue
			}
			q.ret = max(q.call, min(last, end+1))
		}
		ops = append(ops, porcupine.Operation{
			ClientId: q.client, Input: q.asked, Output: q.told, Call: int64(q.call), Return: int64(q.ret),
		})
	}
	return ops
}

// checkLimit bounds the search for an order.
const checkLimit = 3 * time.Minute

// linearizable reports whether one order of all requests about a link explains what was
// told, for each link.
func (h *history) linearizable() (porcupine.CheckResult, porcupine.LinearizationInfo) {
	return porcupine.CheckOperationsVerbose(model(), h.operations(), checkLimit)
}

// mustLinearize fails the test unless the history is linearizable, and names the picture of
// one that is not.
func (h *history) mustLinearize(t *testing.T) {
	t.Helper()
	began := time.Now()
	verdict, info := h.linearizable()
	if verdict == porcupine.Ok {
		t.Logf("%d requests to the API are linearizable, found in %s", len(h.requests), time.Since(began).Round(time.Millisecond))
		return
	}
	info.AddAnnotations(h.faults)
	// Not the test's own folder, which goes with it: somebody has to look at the picture.
	dir, err := os.MkdirTemp("", "curt-history-") //nolint:usetesting // it stays after a failure
	if err != nil {
		t.Fatal(err)
	}
	picture := filepath.Join(dir, "history.html")
	if err := porcupine.VisualizePath(model(), info, picture); err != nil {
		t.Error(err)
	}
	t.Errorf("%d requests to the API: %s; see %s", len(h.requests), verdict, picture)
}

// forever is past every history.
const forever = time.Duration(math.MaxInt64)
