package http_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestAPIIsAsDescribed lets schemathesis make requests out of what the server says of
// its API, right and wrong ones: no answer may be a failure of the server, have a
// status that the operation does not describe, or a body that is not as described.
// The seed is fixed and printed, so that a finding comes again.
func TestAPIIsAsDescribed(t *testing.T) {
	testkit.Faults(t)
	program, err := filepath.Abs("../../bin/tools/venv/bin/schemathesis")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(program); err != nil {
		curttest.Need(t, "schemathesis (scripts/venv schemathesis==VERSION, as in the Makefile)")
	}
	const seed = "20260601"
	budget, examples := "20", "5"
	if curttest.Long() {
		budget, examples = "900", "500"
	}
	s := curttest.Start(t, curttest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	// One worker: two threads that parse at once upset CPython 3.11 ("AST constructor
	// recursion depth mismatch").
	cmd := exec.CommandContext(ctx, program, "run", "http://"+s.Addr+"/api/openapi.json",
		"--header", "Authorization: Bearer "+curttest.Key, "--seed", seed, "--max-time", budget, "--request-timeout", "180", "--max-examples", examples,
		"--phases", "examples,coverage,fuzzing", "--workers", "1", "--generation-database", "none", "--no-color",
		"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("schemathesis, seed %s: %v\n%s", seed, err, out)
	}
	t.Logf("schemathesis, seed %s:\n%s", seed, out)
}
