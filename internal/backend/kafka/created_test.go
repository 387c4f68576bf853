package kafka

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"curt/internal/link"
)

// TestOthersReadCreatedLinks reads created links by the published schema.
func TestOthersReadCreatedLinks(t *testing.T) {
	message := schema(t, "links.proto").Messages().ByName("Created")
	id := link.ID{0: 1, 6: 0x70, 8: 0x80}
	whole := link.Link{
		ID: id, Key: link.Key{Domain: "go.example.com", Code: "café"}, Destination: "https://example.com/a", Workspace: "acme",
		Status: link.Active, CreatedBy: "k1", Created: time.UnixMilli(1_773_500_966_123),
	}
	for _, c := range []struct {
		name string
		link link.Link
		want string
	}{
		{"a link", whole, `id: "01000000-0000-7000-8000-000000000000" domain: "go.example.com" code: "café"
			destination: "https://example.com/a" workspace: "acme" created_by: "k1" created: 1773500966123`},
		{"a deleted one", whole.Tombstone(time.UnixMilli(9)), `id: "01000000-0000-7000-8000-000000000000" domain: "go.example.com" code: "café"
			workspace: "acme" created: 1773500966123 deleted: true`},
		{"a damaged one", link.Link{ID: id, Key: link.Key{Code: "a"}}, `id: "01000000-0000-7000-8000-000000000000" code: "a"`},
	} {
		got, want := dynamicpb.NewMessage(message), dynamicpb.NewMessage(message)
		if err := proto.Unmarshal(appendCreated(nil, &c.link), got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := prototext.Unmarshal([]byte(c.want), want); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !proto.Equal(got, want) || len(got.GetUnknown()) > 0 {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}

// TestCreatedLinksHaveATopicOfTheirOwn: two installations on one cluster do not share it.
func TestCreatedLinksHaveATopicOfTheirOwn(t *testing.T) {
	a, b := Config{Topic: "a"}.Created(), Config{Topic: "b"}.Created()
	if a.Topic == b.Topic || !strings.HasPrefix(a.Topic, "a.") || a.Topic != "a.links.created" {
		t.Errorf("topics %s and %s", a.Topic, b.Topic)
	}
}
