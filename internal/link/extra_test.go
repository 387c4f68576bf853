package link_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
)

// TestFieldsAreAll: every field of a Link is in the table, once, and Of leads to it.
func TestFieldsAreAll(t *testing.T) {
	var l link.Link
	found := map[uintptr]string{}
	for _, f := range link.Fields() {
		at := reflect.ValueOf(f.Of(&l)).Pointer()
		if other, twice := found[at]; twice {
			t.Errorf("%s and %s are one field", f.Name, other)
		}
		found[at] = f.Name
		if f.Kind < link.Record || f.Kind > link.Secret {
			t.Errorf("%s has no kind", f.Name)
		}
		if f.Column == "" && (f.Name == "" || f.Fixed || f.Remains || f.Counter) {
			t.Errorf("%q has no column, which a name of its own and no more must allow", f.Name)
		}
		if answers := f.Kind == link.Answer || f.Kind == link.Secret; (f.Needs != 0) != (answers && f.Column == "") {
			t.Errorf("%s: bits %x", f.Name, f.Needs)
		}
	}
	var check func(v reflect.Value, name string)
	check = func(v reflect.Value, name string) {
		if name == ".Later" {
			return
		}
		if v.Kind() == reflect.Struct && name != ".Starts" && name != ".Expires" && name != ".Created" && name != ".Updated" {
			for i := range v.NumField() {
				check(v.Field(i), name+"."+v.Type().Field(i).Name)
			}
			return
		}
		if _, ok := found[v.Addr().Pointer()]; !ok {
			t.Errorf("link.Link%s is not in the table", name)
		}
	}
	check(reflect.ValueOf(&l).Elem(), "")
}

// TestExtra: what a later release stored comes back as it was, and is never read for what it
// is not.
func TestExtra(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":         "",
		"unknown fields":  `{"v":1,"when":{"a":[1,2.50]},"x_note":"a note"}`,
		"another version": `{"v":2,"x_note":["as","they","like"]}`,
	} {
		var l link.Link
		if err := l.SetExtra(text, 4); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := l.Extra(); err != nil || got != text || l.Needs() != 4 {
			t.Errorf("%s: %s, bits %x, %v", name, got, l.Needs(), err)
		}
	}
	var l link.Link
	for _, broken := range []string{"{", "[]", `"a"`, "{} {}"} {
		if err := l.SetExtra(broken, 0); err == nil {
			t.Errorf("%s is read as %+v", broken, l.Later)
		}
	}
	l.Later.Members = "{"
	if _, err := l.Extra(); !errors.Is(err, link.ErrInvalid) {
		t.Errorf("what is no JSON is written: %v", err)
	}
}

// TestLaterStaysWithALink: a tombstone has nothing of it, and what needs it stands in for nobody.
func TestLaterStaysWithALink(t *testing.T) {
	l := valid()
	wanted := l
	l.Later = link.Later{Needs: 1, Members: `{"x_note":"a note"}`}
	if l.Equivalent(wanted, l.Created) {
		t.Error("a link that needs more stands in for one that does not")
	}
	l.Later.Needs = 0
	if !l.Equivalent(wanted, l.Created) {
		t.Error("a note keeps a link from standing in")
	}
	if diff := cmp.Diff(link.Later{}, l.Tombstone(l.Created).Later); diff != "" {
		t.Error(diff)
	}
	if !json.Valid([]byte(l.Later.Members)) {
		t.Error("the note is no JSON")
	}
}
