package ddb_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/dynamodb/ddb"
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
		"dynamodb://curt?region=a&region=b", "dynamodb://curt?region=", "dynamodb://curt?region=EU central", "dynamodb://curt?protection=on&protection=on",
		"dynamodb://curt?tags=a:b,a:c", "dynamodb://curt?tags=aws:x", "dynamodb://curt?tags=a:b!", "dynamodb://curt?tags=" + strings.Repeat("x", 129) + ":y",
		"dynamodb://curt?endpoint=http://user:pw@host", "dynamodb://curt?endpoint=http://host/path", "dynamodb://curt?endpoint=http://host?x=y", "dynamodb://curt?endpoint=http://:80",
	} {
		if a, err := ddb.ParseAddress(wrong); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v", wrong, a, err)
		}
	}
}
