package server

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// health answers the probes. Alive means that the process answers; ready means
// that it wants traffic: started, not draining, and its link store takes questions.
type health struct {
	started  atomic.Bool
	draining atomic.Bool
	store    func() error // nil = the link store can be asked
}

type report struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks,omitempty"`
}

func (h *health) live(w http.ResponseWriter, _ *http.Request) {
	writeReport(w, http.StatusOK, report{Status: healthy})
}

func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	r := h.state()
	status := http.StatusOK
	if r.Status != healthy {
		status = http.StatusServiceUnavailable
	}
	writeReport(w, status, r)
}

// healthy is the status of a server that wants traffic.
const healthy = "ok"

func (h *health) state() report {
	r := report{Status: healthy, Checks: map[string]string{"links": "ok"}}
	if err := h.store(); err != nil {
		r.Status, r.Checks["links"] = "unavailable", "unavailable"
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
