package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Generators of clients make types, functions and constants of the names of schemas and of
// operations, and few of them see when two are the same. No two may differ by case alone,
// and none may be what a generator calls something else.
func TestNamesStayApart(t *testing.T) {
	d := newDocumented(t, newService(t))
	taken := map[string]string{} // by the name without case: what has it
	claim := func(name, what string) {
		folded := strings.ToLower(strings.NewReplacer("-", "", "_", "", ":", "", ".", "").Replace(name))
		if before, ok := taken[folded]; ok && before != what {
			t.Errorf("%s and %s are both called %s", before, what, name)
		}
		taken[folded] = what
	}
	schemas, _ := at(d.tree, "components", "schemas").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		claim(name, "schema "+name)
		claim("New"+name, "the constructor of "+name)
		names, _ := at(schemas[name], "x-enum-varnames").([]any)
		for _, word := range names {
			claim(fmt.Sprint(word), fmt.Sprintf("the choice %v of %s", word, name))
		}
		properties, _ := at(schemas[name], "properties").(map[string]any)
		for property, p := range properties {
			if at(p, "additionalProperties") != nil || at(p, "properties") != nil {
				claim(name+property, "what is in "+name+"."+property)
			}
		}
	}
	for _, id := range d.operationIDs() {
		for _, suffix := range []string{"Request", "Response", "Params", "Body", "JSONRequestBody"} {
			claim(id+suffix, "the "+suffix+" of operation "+id)
		}
	}
	if len(taken) < 400 {
		t.Errorf("only %d names were found", len(taken))
	}
	reserved := []string{"File", "Self", "Map", "Set", "Date", "Error", "Object", "Type", "Any", "None", "Client", "Response", "Request", "Configuration"}
	for _, name := range reserved {
		if schemas[name] != nil {
			t.Errorf("generators cannot call a type %s", name)
		}
	}
}

// A choice is spelled out in its component alone, which names each word. An optional member
// of a body has no default: some generators would make it a required one.
func TestChoicesAreComponents(t *testing.T) {
	d := newDocumented(t, newService(t))
	schemas, _ := at(d.tree, "components", "schemas").(map[string]any)
	spelled := map[string]string{}
	found := 0
	for name, s := range schemas {
		words, ok := at(s, "enum").([]any)
		if !ok {
			continue
		}
		found++
		if other, ok := spelled[fmt.Sprint(words)]; ok {
			t.Errorf("%s and %s are the same choice", name, other)
		}
		spelled[fmt.Sprint(words)] = name
		if names, _ := at(s, "x-enum-varnames").([]any); len(names) != len(words) {
			t.Errorf("%s has %d words and %d names of words", name, len(words), len(names))
		}
	}
	if found < 20 {
		t.Errorf("only %d choices were found", found)
	}
	var walk func(tree any, place string, component bool)
	walk = func(tree any, place string, component bool) {
		switch v := tree.(type) {
		case map[string]any:
			if _, ok := v["enum"].([]any); ok && !component {
				t.Errorf("%s spells out its choice", place)
			}
			if v["default"] != nil && !strings.HasPrefix(place, "/paths/") {
				t.Errorf("%s has a default", place)
			}
			for name, member := range v {
				if name != "examples" && name != "example" {
					walk(member, place+"/"+name, place == "/components/schemas")
				}
			}
		case []any:
			for _, member := range v {
				walk(member, place, false)
			}
		}
	}
	walk(d.tree, "", false)
}

// Every operation has one tag, and the description says what it means and where the
// server is.
func TestOperationsAreTagged(t *testing.T) {
	d := newDocumented(t, newService(t))
	tags, _ := at(d.tree, "tags").([]any)
	used := map[string]int{}
	for _, tag := range tags {
		if about := fmt.Sprint(at(tag, "description")); len(about) < 15 {
			t.Errorf("the tag %v is %q", at(tag, "name"), about)
		}
		used[fmt.Sprint(at(tag, "name"))] = 0
	}
	paths, _ := at(d.tree, "paths").(map[string]any)
	for path, methods := range paths {
		for method, op := range methods.(map[string]any) { //nolint:forcetypeassert // a panic fails the test as well
			of, _ := at(op, "tags").([]any)
			if len(of) != 1 {
				t.Fatalf("%s %s has the tags %v", method, path, of)
			}
			name := fmt.Sprint(of[0])
			if _, ok := used[name]; !ok {
				t.Errorf("%s %s has the tag %s, which is not described", method, path, name)
			}
			used[name]++
			if compat := !strings.HasPrefix(path, "/api/v1/") || strings.HasPrefix(path, "/api/v1/urls"); compat != (name == "compatibility") {
				t.Errorf("%s %s has the tag %s", method, path, name)
			}
		}
	}
	for name, n := range used {
		if n == 0 {
			t.Errorf("no operation has the tag %s", name)
		}
	}
	if servers, _ := at(d.tree, "servers").([]any); len(servers) != 1 || at(servers[0], "url") != "https://curt.test" {
		t.Errorf("servers %v, want the base URL", servers)
	}
}
