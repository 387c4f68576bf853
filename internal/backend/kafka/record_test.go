package kafka

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/useragent"
)

var update = flag.Bool("update", false, "write testdata anew")

// schema compiles a file of api.
func schema(t *testing.T, name string) protoreflect.FileDescriptor {
	t.Helper()
	c := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{"../../../api"}}}
	files, err := c.Compile(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

func someEvent() *clicklog.Event {
	return &clicklog.Event{
		ID: clicks.EventID{Instance: 1<<63 + 5, Sequence: 300}, Time: 1_773_500_966_123, Outcome: clicks.Redirected,
		Flags: clicks.Head | clicks.Prefetch | clicks.ViaQR | clicks.Warned, Visitor: 77, Country: [2]byte{'C', 'H'},
		City: []byte("Zürich"), Network: []byte("AS1 Net"), Key: clicklog.AppendKey(nil, "go.example.com", "café"),
		UserAgent: []byte("agent\xff"), Referrer: []byte("https://example.org/"), Language: []byte("de-CH"), Query: []byte("qr=1"),
	}
}

// TestOthersReadWhatWeWrite reads records by the published schema.
func TestOthersReadWhatWeWrite(t *testing.T) {
	record := schema(t, "clicks.proto").Messages().ByName("Record")
	orphan := &clicklog.Event{
		ID: clicks.EventID{Instance: 9, Sequence: 0}, Time: -1, Outcome: clicks.Orphan,
		City: []byte("Z\xfcrich"), Key: clicklog.AppendKey(nil, "", "what a stranger typed"),
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"a click", appendClick(nil, someEvent()), `click { instance: 9223372036854775813 sequence: 300 time: 1773500966123 outcome: OUTCOME_REDIRECTED
			head: true prefetch: true qr: true warned: true visitor: 77 domain: "go.example.com" code: "café" country: "CH" city: "Zürich"
			network: "AS1 Net" user_agent: "agent\xff" referrer: "https://example.org/" language: "de-CH" query: "qr=1" }`},
		{"what it told", appendClick(nil, readEvent()), `click { instance: 9223372036854775813 sequence: 300 time: 1773500966123 outcome: OUTCOME_REDIRECTED
			head: true prefetch: true qr: true warned: true visitor: 77 domain: "go.example.com" code: "café" country: "CH" city: "Zürich"
			network: "AS1 Net" referrer: "https://example.org/" language: "de-CH" query: "qr=1" device: "bot" browser: "(other)" os: "Linux"
			bot_reason: "named" bot_name: "Thing" }`},
		{"no link", appendClick(nil, orphan), `click { instance: 9 time: -1 outcome: OUTCOME_ORPHAN city: "Z\uFFFDrich" }`},
		{"a promise", promiseRecord(InstanceMark{9, clicks.Ended}), `promise { instance: 9 watermark: 9223372036854775807 }`},
	} {
		got, want := dynamicpb.NewMessage(record), dynamicpb.NewMessage(record)
		if err := proto.Unmarshal(c.bytes, got); err != nil {
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

// readEvent is an event whose user agent was read.
func readEvent() *clicklog.Event {
	e := someEvent()
	e.UserAgent, e.Agent, e.BotName = nil, useragent.NewAgent("bot", clicks.Other, "Linux", clicks.BotNamed), []byte("Thing")
	return e
}

// TestWhatAgentsTellComesBack reads what is written of an agent.
func TestWhatAgentsTellComesBack(t *testing.T) {
	var got clicklog.Event
	if p, err := ReadRecord(appendClick(nil, readEvent()), &got); err != nil || p != nil {
		t.Fatalf("%v, %v", p, err)
	}
	if diff := cmp.Diff(readEvent(), &got, cmp.AllowUnexported(useragent.Agent{})); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

// TestTheSchemaIsCompatible compares the schema with that of every version before: what was
// there stays as it was. New fields are added with -update.
func TestTheSchemaIsCompatible(t *testing.T) {
	for proto, noted := range map[string]string{"clicks.proto": "schema.txt", "links.proto": "schema-links.txt"} {
		t.Run(proto, func(t *testing.T) { compatible(t, schema(t, proto), filepath.Join("testdata", noted)) })
	}
}

func compatible(t *testing.T, file protoreflect.FileDescriptor, name string) {
	t.Helper()
	var now strings.Builder
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			kind := f.Kind().String()
			if f.Message() != nil {
				kind = string(f.Message().FullName())
			} else if f.Enum() != nil {
				kind = string(f.Enum().FullName())
			}
			fmt.Fprintf(&now, "%s %d %s %s %s\n", m.FullName(), f.Number(), f.Name(), f.Cardinality(), kind)
		}
	}
	for i := range file.Enums().Len() {
		e := file.Enums().Get(i)
		for j := range e.Values().Len() {
			fmt.Fprintf(&now, "%s %d %s\n", e.FullName(), e.Values().Get(j).Number(), e.Values().Get(j).Name())
		}
	}
	before, err := os.ReadFile(name)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(before)) {
		if !strings.Contains(now.String(), line) {
			t.Errorf("not as it was any more: %s", line)
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(name, []byte(now.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(before), now.String()); diff != "" {
		t.Errorf("the schema grew; go test -run TestTheSchemaIsCompatible -update notes it (-noted +schema):\n%s", diff)
	}
}

// TestRecordsOfEveryVersionAreRead reads bytes that a release wrote.
func TestRecordsOfEveryVersionAreRead(t *testing.T) {
	golden := filepath.Join("testdata", "click-v1.hex")
	if *update {
		if err := os.WriteFile(golden, []byte(hex.EncodeToString(appendClick(nil, someEvent()))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// Fields of versions to come are passed over.
	b = append(b, 0xfa, 0x01, 0x01, 'x', 0xf5, 0x01, 1, 2, 3, 4)
	var got clicklog.Event
	if p, err := ReadRecord(b, &got); err != nil || p != nil {
		t.Fatalf("%v, %v", p, err)
	}
	if diff := cmp.Diff(someEvent(), &got, cmp.AllowUnexported(useragent.Agent{})); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":         nil,
		"text":            []byte("hello"),
		"cut":             appendClick(nil, someEvent())[:40],
		"another message": {0x1a, 0x00},
		"an empty click":  {0x0a, 0x00},
		"no instance":     promiseRecord(InstanceMark{0, 5}),
		"an outcome of 9": {0x0a, 0x0b, 0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0x20, 9},
	} {
		if p, err := ReadRecord(b, new(clicklog.Event)); err == nil {
			t.Errorf("%s: %v, want an error", name, p)
		}
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add(appendClick(nil, someEvent()))
	f.Add(promiseRecord(InstanceMark{1, 2}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e clicklog.Event
		p, err := ReadRecord(b, &e)
		if err != nil || p != nil {
			return
		}
		var again clicklog.Event
		if _, err := ReadRecord(appendClick(nil, &e), &again); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if again.ID != e.ID || again.Time != e.Time || !bytes.Equal(again.UserAgent, e.UserAgent) {
			t.Fatalf("%+v became %+v", e, again)
		}
	})
}
