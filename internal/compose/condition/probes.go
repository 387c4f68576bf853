package condition

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"

	"curt/internal/compose"
)

// Probes answer whether the process runs, and whether it wants traffic: it has started, is not
// draining, and all that its role requires answers.
type Probes struct {
	started  atomic.Bool
	role     []string
	needs    []compose.Dependency
	draining func() bool
}

// Watch sets what readiness depends on, before anything is served.
func (h *Probes) Watch(role []string, needs []compose.Dependency, draining func() bool) {
	h.role, h.needs, h.draining = role, needs, draining
}

// Start says that the server has started.
func (h *Probes) Start() { h.started.Store(true) }

// Status returns "ok" while the server wants traffic, and otherwise why it does not.
func (h *Probes) Status() string { return h.state().Status }

// OK reports whether the server wants traffic.
func (h *Probes) OK() bool { return h.Status() == healthy }

// report is what /readyz says: of each dependency, too, so that one that is
// down shows before it is missed.
type report struct {
	Status string           `json:"status"`
	Role   []string         `json:"role,omitempty"`
	Checks map[string]check `json:"checks,omitempty"`
}

type check struct {
	Status   string `json:"status"`
	Required bool   `json:"required"`
	Detail   string `json:"detail,omitempty"` // for the operator
}

// explained is an error that says what its operator can mend, and no more than that: no name of a
// user, no secret, and an address only where several servers do the same.
type explained interface {
	error
	PublicMessage() string
}

// Live answers while the process runs.
func (h *Probes) Live(w http.ResponseWriter, _ *http.Request) {
	writeReport(w, report{Status: healthy})
}

// Ready answers without details, which are for the operator.
func (h *Probes) Ready(w http.ResponseWriter, _ *http.Request) {
	r := h.state()
	for name, c := range r.Checks {
		c.Detail = ""
		r.Checks[name] = c
	}
	writeReport(w, r)
}

// ReadyInFull is Ready for the operator.
func (h *Probes) ReadyInFull(w http.ResponseWriter, _ *http.Request) { writeReport(w, h.state()) }

// The words of a report.
const (
	healthy     = "ok" // of a server: it wants traffic
	unavailable = "unavailable"
)

func (h *Probes) state() report {
	r := report{Status: healthy, Role: h.role, Checks: make(map[string]check, len(h.needs))}
	for _, d := range h.needs {
		c := check{Status: healthy, Required: d.Required}
		if err := d.State(); err != nil {
			if c.Status = unavailable; d.Required {
				r.Status = unavailable
			}
			if e, ok := errors.AsType[explained](err); ok {
				c.Detail = e.PublicMessage()
			}
		}
		r.Checks[d.Name] = c
	}
	switch {
	case h.draining():
		r.Status = "draining"
	case !h.started.Load():
		r.Status = "starting"
	}
	return r
}

func writeReport(w http.ResponseWriter, r report) {
	status := http.StatusOK
	if r.Status != healthy {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(r) // a prober that went away needs no answer
}
