package pending_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/pending"
)

// whole is a link whose every field holds something.
func whole(t *testing.T) link.Link {
	t.Helper()
	at := time.Date(2026, 11, 27, 3, 0, 0, 7e6, time.UTC)
	id, err := link.NewID(at, strings.NewReader("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	l := link.Link{
		ID: id, Key: link.Key{Domain: "go.example", Code: "aB3xYz9"}, Destination: "https://example.com/?a=1&b=<ü>", Workspace: "acme",
		Status: link.Active, Safety: link.Warn, Redirect: 308, CodeKind: link.Counted, Starts: at, Expires: at.Add(time.Hour), Created: at,
		Updated: at.Add(time.Second), MaxClicks: 7, Spent: 3, Fallback: "https://example.com/over", ForwardQuery: true, NoIndex: true, Cacheable: true,
		CreatedBy: "key-1", Title: "Title \u2028 \"", Tags: []string{"a", "b"}, Version: 4,
	}
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "Later" && v.Field(i).IsZero() {
			t.Fatalf("the field %s is zero: a record of it would prove nothing", name)
		}
	}
	return l
}

func TestARecordHasEveryField(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]link.Link{"whole": whole(t), "bare": {ID: whole(t).ID, Key: link.Key{Code: "x"}}} {
		text, err := pending.Encode(&l)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pending.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, got); diff != "" {
			t.Errorf("%s (-in +out):\n%s", name, diff)
		}
	}
}

func TestWhatALaterReleaseAddedStays(t *testing.T) {
	t.Parallel()
	l := whole(t)
	if err := l.SetExtra(`{"v":1,"someday":[1,2]}`, 0); err != nil {
		t.Fatal(err)
	}
	text, err := pending.Encode(&l)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pending.Decode(text)
	if err != nil || got.Later != l.Later || got.Later.Members == "" {
		t.Errorf("read %+v, %v, want %+v", got.Later, err, l.Later)
	}
}

func TestStrangeRecords(t *testing.T) {
	t.Parallel()
	l := whole(t)
	text, err := pending.Encode(&l)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) string {
		changed := maps.Clone(fields)
		changed[name] = value
		b, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"nothing":         {"", pending.ErrUnreadable},
		"no JSON":         {"\x00\xff", pending.ErrUnreadable},
		"half":            {string(text[:len(text)/2]), pending.ErrUnreadable},
		"another value":   {"[]", pending.ErrUnreadable},
		"no link":         {`{"v":1}`, pending.ErrUnreadable},
		"a wrong type":    {`{"v":1,"link":{"code":7}}`, pending.ErrUnreadable},
		"no id":           {`{"v":1,"link":{"code":"abc"}}`, pending.ErrUnreadable},
		"a newer release": {with("v", 2), pending.ErrNewer},
		"wrong extra":     {with("extra", "{"), pending.ErrUnreadable},
		"a new field":     {with("later", 1), nil},
	} {
		if _, err := pending.Decode([]byte(tt.text)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if l, err := pending.Decode([]byte(`{"v":1,"link":{"code":"abc","status":"x"}}`)); err == nil || l.Key.Code != "abc" {
		t.Errorf("of a record that is half readable: %+v, %v", l.Key, err)
	}
}
