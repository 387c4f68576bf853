package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"curt/test/internal/curttest"
)

// check compares an answer with one expectation and returns what its named groups
// matched. An expectation that cannot be read is an error like one that fails.
func check(w string, a curttest.Answer, vars Vars, now time.Time) (Vars, error) {
	subject, op, want := split(w)
	quote := same
	if op == "~" {
		quote = regexp.QuoteMeta
	}
	want, err := vars.Expand(want, now, quote)
	if err != nil {
		return nil, err
	}
	word, path, _ := strings.Cut(subject, " ")
	switch {
	case op == "" && word == "problem":
		return nil, checkProblem(path, a)
	case op == "":
		return nil, checkStatus(subject, a)
	case word == "body":
		return checkText("body", op, want, string(a.Body), len(a.Body) > 0)
	case word == "json":
		return checkJSON(path, op, want, a.Body)
	}
	value, once := a.Get(subject)
	if !once && a.Has(subject) {
		return nil, fmt.Errorf("%s is there more than once", subject)
	}
	return checkText(subject, op, want, value, once)
}

// split takes an expectation apart: "Name: value", "Name ~ expression",
// "json path = value", "Name -", or a word alone with operator "".
func split(w string) (subject, op, want string) {
	for _, op := range []string{" ~ ", " = "} {
		if s, rest, ok := strings.Cut(w, op); ok && !strings.Contains(s, ": ") {
			return s, strings.TrimSpace(op), rest
		}
	}
	if s, ok := strings.CutSuffix(w, " -"); ok && !strings.Contains(s, ":") {
		return s, "-", ""
	}
	if s, rest, ok := strings.Cut(w, ": "); ok {
		return s, ":", rest
	}
	return w, "", ""
}

func checkStatus(want string, a curttest.Answer) error {
	n, err := strconv.Atoi(want)
	if err != nil {
		return fmt.Errorf("expectation %q cannot be read", want)
	}
	if a.Status != n {
		return fmt.Errorf("status %d, want %d", a.Status, n)
	}
	return nil
}

func checkProblem(kind string, a curttest.Answer) error {
	var p struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
	}
	if v, _ := a.Get("Content-Type"); v != "application/problem+json" {
		return fmt.Errorf("Content-Type %q, want application/problem+json", v)
	}
	if err := json.Unmarshal(a.Body, &p); err != nil {
		return fmt.Errorf("problem: %w", err)
	}
	if p.Status != a.Status || p.Title == "" || p.Type == "" {
		return fmt.Errorf("problem of %d has status %d, title %q, type %q", a.Status, p.Status, p.Title, p.Type)
	}
	if kind != "" && p.Type != kind && !strings.HasSuffix(p.Type, "/"+kind) && !strings.HasSuffix(p.Type, ":"+kind) {
		return fmt.Errorf("problem type %q, want …%s", p.Type, kind)
	}
	return nil
}

// checkText compares a text; there says whether the thing exists at all.
func checkText(what, op, want, got string, there bool) (Vars, error) {
	switch op {
	case "-":
		if there {
			return nil, fmt.Errorf("%s is %q, want none", what, got)
		}
		return nil, nil
	case "=":
		text, err := strconv.Unquote(want)
		if err != nil {
			return nil, fmt.Errorf("%s: %s is not a Go string", what, want)
		}
		want = text
	case "~":
		return match(what, want, got, there)
	}
	if !there || got != want {
		return nil, fmt.Errorf("%s is %q, want %q", what, got, want)
	}
	return nil, nil
}

func match(what, expr, got string, there bool) (Vars, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	m := re.FindStringSubmatch(got)
	if m == nil || !there {
		return nil, fmt.Errorf("%s is %q, want a match of %s", what, got, expr)
	}
	vars := Vars{}
	for i, name := range re.SubexpNames() {
		if name != "" {
			vars[name] = m[i]
		}
	}
	return vars, nil
}

func checkJSON(path, op, want string, body []byte) (Vars, error) {
	what := "json " + path
	root, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("body is not JSON: %w: %q", err, body)
	}
	value, there := find(root, path)
	switch op {
	case "-":
		if there {
			return nil, fmt.Errorf("%s is %v, want none", what, value)
		}
		return nil, nil
	case "~":
		return match(what, want, fmt.Sprint(value), there)
	}
	wanted, err := decode([]byte(want))
	if err != nil {
		return nil, fmt.Errorf("%s: want %q is not JSON: %w", what, want, err)
	}
	if !there || !reflect.DeepEqual(value, wanted) {
		return nil, fmt.Errorf("%s is %v, want %v", what, value, wanted)
	}
	return nil, nil
}

// decode reads one JSON value and nothing after it; numbers keep their digits.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more after the JSON value")
	}
	return v, nil
}

// find walks a path such as links.0.tags or links.#.
func find(v any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			member, ok := at[name]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			if name == "#" {
				v = json.Number(strconv.Itoa(len(at)))
				continue
			}
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}
