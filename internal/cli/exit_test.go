package cli_test

import (
	"fmt"
	"testing"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/backend/kafka"
	"curt/internal/cli"
)

// What may work later has another exit code than what failed.
func TestExitOfServicesThatAreAway(t *testing.T) {
	for _, away := range []error{ddb.ErrAway, kafka.ErrSilent} {
		if code := cli.Exit(cli.Terminal{Err: t.Output()}, fmt.Errorf("serve: %w", away)); code != cli.ExitUnavailable {
			t.Errorf("%v: %d", away, code)
		}
	}
}
