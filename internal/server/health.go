package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
)

// dependency is something that the server asks for its work.
type dependency struct {
	name     string
	required bool         // without it a server of this role wants no traffic
	state    func() error // nil = it answers; it does no I/O
}

// health answers the probes. Alive means that the process answers; ready means
// that it wants traffic: started, not draining, and all that its role requires answers.
type health struct {
	started  atomic.Bool
	draining atomic.Bool
	role     []string // set before the first question, as needs
	needs    []dependency
}

// report is what /readyz says: of each dependency, too, so that whoever looks sees what is
// away before it is missed.
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

// explained is an error that says what its operator can mend, and no more than that: no
// address, no name of a user.
type explained interface {
	error
	PublicMessage() string
}

func (h *health) live(w http.ResponseWriter, _ *http.Request) {
	writeReport(w, http.StatusOK, report{Status: healthy})
}

// ready is what anybody may hear.
func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	r := h.state()
	for name, c := range r.Checks {
		c.Detail = ""
		r.Checks[name] = c
	}
	writeReadiness(w, r)
}

// readyInFull is for the operator.
func (h *health) readyInFull(w http.ResponseWriter, _ *http.Request) { writeReadiness(w, h.state()) }

func writeReadiness(w http.ResponseWriter, r report) {
	status := http.StatusOK
	if r.Status != healthy {
		status = http.StatusServiceUnavailable
	}
	writeReport(w, status, r)
}

// The words of a report.
const (
	healthy     = "ok" // of a server: it wants traffic
	unavailable = "unavailable"
)

func (h *health) state() report {
	r := report{Status: healthy, Role: h.role, Checks: make(map[string]check, len(h.needs))}
	for _, d := range h.needs {
		c := check{Status: healthy, Required: d.required}
		if err := d.state(); err != nil {
			if c.Status = unavailable; d.required {
				r.Status = unavailable
			}
			if e, ok := errors.AsType[explained](err); ok {
				c.Detail = e.PublicMessage()
			}
		}
		r.Checks[d.name] = c
	}
	switch {
	case h.draining.Load():
		r.Status = "draining"
	case !h.started.Load():
		r.Status = "starting"
	}
	return r
}

func writeReport(w http.ResponseWriter, status int, r report) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(r) // a prober that went away needs no answer
}
