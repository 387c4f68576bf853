package dashboard_test

import (
	"strings"
	"testing"

	"curt/test/internal/browser"
	"curt/test/internal/curttest"
)

// adminPlan is what admin.mjs is told to do.
type adminPlan struct {
	Program  string `json:"program"`
	Pictures string `json:"pictures,omitempty"`
	Base     string `json:"base"`
	Second   string `json:"second"` // a further domain
	Key      string `json:"key"`
	Markup   string `json:"markup"`  // what a stranger may leave everywhere
	Hostile  string `json:"hostile"` // and where any sign may stand
	Spelled  string `json:"spelled"`
}

// useAsOperators drives the screens about more than links, on a server of its own: files
// come in and go out, keys are made and revoked, cases are decided, bans are made and lifted.
func useAsOperators(t *testing.T) {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_DOMAINS=go.example", "CURT_REPORT_LIMIT=off", "CURT_THRESHOLDS=quarantine=60,block=80"}})
	_, port, _ := strings.Cut(s.Addr, ":")
	needDashboard(t, s)
	drive(t, "admin.mjs", adminPlan{
		Program: browser.Program(t), Pictures: browser.Pictures(), Base: "http://localhost:" + port, Second: "go.example", Key: curttest.Key,
		Markup: hostile, Hostile: hostile + turned, Spelled: hostile + "[U+202E]gpj.exe",
	})
}
