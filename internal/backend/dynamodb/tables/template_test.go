package tables_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"curt/internal/backend/dynamodb/tables"
)

var update = flag.Bool("update", false, "write the template anew")

// TestTemplateIsCommitted compares deploy/dynamodb with what curt migrate makes: both come from one
// description, which TestMigrate holds to the tables of DynamoDB Local.
func TestTemplateIsCommitted(t *testing.T) {
	const path = "../../../../deploy/dynamodb/curt.json"
	want, err := tables.Template()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the tables are, %v: go test ./internal/backend/dynamodb/tables -update", path, err)
	}
}
