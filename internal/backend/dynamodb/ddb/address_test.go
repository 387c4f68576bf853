package ddb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/link"
)

func TestParseAddress(t *testing.T) {
	got, err := ddb.ParseAddress("dynamodb://curt.links?region=eu-central-1&endpoint=http://127.0.0.1:8000&tags=team:links,env:prod&protection=off")
	want := ddb.Address{Table: "curt.links", Region: "eu-central-1", Endpoint: "http://127.0.0.1:8000", Tags: map[string]string{"team": "links", "env": "prod"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := ddb.ParseAddress("dynamodb://curt"); err != nil || got.Table != "curt" || got.State() != "curt-state" || !got.Protection {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []string{
		"", "dynamodb://", "dynamodb://ab", "dynamodb://a b c", "dynamodb://curt/path", "dynamodb://user@curt", "postgres://curt",
		"dynamodb://curt?region=x&table=y", "dynamodb://curt?endpoint=127.0.0.1:8000", "dynamodb://curt?tags=x", "dynamodb://curt?protection=maybe",
		"dynamodb://" + strings.Repeat("x", 241),
	} {
		if a, err := ddb.ParseAddress(wrong); !errors.Is(err, link.ErrInvalid) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v", wrong, a, err)
		}
	}
}
