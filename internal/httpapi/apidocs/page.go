package apidocs

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // docs.html
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/httpapi/kernel"
)

//go:embed docs.html
var docsSource string

// docsPage is the page for people.
type docsPage struct {
	text   []byte
	policy string // allows its own style and nothing else: no script, no picture, nothing from elsewhere
}

func renderDocs(d docs) (docsPage, error) {
	t, err := template.New("docs").Parse(docsSource)
	if err != nil {
		return docsPage{}, fmt.Errorf("parse the page of the API: %w", err)
	}
	_, rest, opened := strings.Cut(docsSource, "<style>")
	style, _, closed := strings.Cut(rest, "</style>")
	if !opened || !closed {
		return docsPage{}, errors.New("the page of the API has no style to hash")
	}
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		return docsPage{}, fmt.Errorf("render the page of the API: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return docsPage{[]byte(b.String()), policy}, nil
}

// docs is what docs.html shows: the same description that programs get, in the order
// in which people read.
type docs struct {
	Description string
	Groups      []docsGroup
	Schemas     []docsSchema
	Problems    []kernel.ProblemType
}

type docsGroup struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Description string
	Scope, Instead                         string
	Anonymous                              bool
	Parameters                             []docsParameter
	Bodies                                 []docsBody
	Answers                                []docsAnswer
	Examples                               []docsExample
}

type docsParameter struct {
	Name, In, Description string
	Required              bool
	Type                  docsType
}

type docsBody struct {
	Media string
	Type  docsType
}

type docsAnswer struct {
	Status, Description string
	Headers             []docsHeader
	Bodies              []docsBody
}

type docsHeader struct{ Name, Description string }

type docsExample struct{ Name, Summary, Request, Answer string }

type docsSchema struct {
	Name, Description string
	Type              docsType // of a schema that is no object
	Fields            []docsField
}

type docsField struct {
	Name, Description string
	Required          bool
	Type              docsType
}

// docsType is a type in words; Refs are the schemas that it names.
type docsType struct {
	Text string
	Refs []string
}

func docsOf(described *huma.OpenAPI, operations []*kernel.Operation, problems []kernel.ProblemType) docs {
	d := docs{Description: described.Info.Description, Problems: problems}
	for _, tag := range described.Tags {
		group := docsGroup{Name: tag.Name, Description: tag.Description}
		for _, op := range operations {
			if slices.Contains(op.Tags, tag.Name) {
				group.Operations = append(group.Operations, operationDocs(op))
			}
		}
		d.Groups = append(d.Groups, group)
	}
	schemas := described.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		d.Schemas = append(d.Schemas, docsSchemaOf(name, schemas[name]))
	}
	return d
}

func operationDocs(op *kernel.Operation) docsOperation {
	scopes := append(op.Action.Scopes(), "", "")
	d := docsOperation{
		ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description,
		Scope: string(scopes[0]), Instead: string(scopes[1]), Anonymous: op.Anonymous, Examples: docsExamples(op),
	}
	for _, p := range op.Parameters {
		d.Parameters = append(d.Parameters, docsParameter{p.Name, p.In, p.Description, p.Required, typeOf(p.Schema)})
	}
	if op.RequestBody != nil {
		d.Bodies = docsBodies(op.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		answer := docsAnswer{Status: status, Description: r.Description, Bodies: docsBodies(r.Content)}
		for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
			answer.Headers = append(answer.Headers, docsHeader{name, r.Headers[name].Description})
		}
		d.Answers = append(d.Answers, answer)
	}
	return d
}

func docsBodies(content map[string]*huma.MediaType) (all []docsBody) {
	for _, media := range slices.Sorted(maps.Keys(content)) {
		all = append(all, docsBody{media, typeOf(content[media].Schema)})
	}
	return all
}

func docsSchemaOf(name string, s *huma.Schema) docsSchema {
	d := docsSchema{Name: name, Description: s.Description}
	if len(s.Properties) == 0 {
		d.Type = typeOf(s)
		return d
	}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		d.Fields = append(d.Fields, docsField{field, p.Description, slices.Contains(s.Required, field), typeOf(p)})
	}
	return d
}

// typeOf puts a schema into words.
func typeOf(s *huma.Schema) docsType {
	var t docsType
	if s == nil {
		return t
	}
	words := []string{t.name(s)}
	if s.Format != "" {
		words = append(words, s.Format)
	}
	words = append(words, bounds(s)...)
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			if v != nil {
				values = append(values, fmt.Sprint(v))
			}
		}
		words = append(words, "one of "+strings.Join(values, ", "))
	}
	if s.Default != nil {
		words = append(words, fmt.Sprintf("default %v", s.Default))
	}
	if s.Nullable || len(s.AnyOf) > 0 { // NameEnums writes no other
		words = append(words, "or null")
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	t.Text = strings.Join(words, ", ")
	return t
}

// name returns the type alone and notes what it refers to.
func (t *docsType) name(s *huma.Schema) string {
	switch {
	case s.Ref != "":
		t.Refs = append(t.Refs, s.Ref[strings.LastIndex(s.Ref, "/")+1:])
		return ""
	case len(s.AnyOf) > 0:
		return t.name(s.AnyOf[0])
	case len(s.OneOf) > 0:
		for _, one := range s.OneOf {
			t.name(one)
		}
		return "one of"
	case s.Type == huma.TypeArray && s.Items != nil:
		return "array of " + t.orRef(s.Items)
	case s.Type == huma.TypeObject:
		if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
			return "object of " + t.orRef(values)
		}
	}
	return s.Type
}

func (t *docsType) orRef(s *huma.Schema) string {
	if name := t.name(s); name != "" {
		return name
	}
	return "…"
}

func bounds(s *huma.Schema) (words []string) {
	for _, b := range []struct {
		word string
		n    *float64
	}{{"at least", s.Minimum}, {"at most", s.Maximum}} {
		if b.n != nil {
			words = append(words, b.word+" "+strconv.FormatFloat(*b.n, 'f', -1, 64))
		}
	}
	for _, b := range []struct {
		word string
		n    *int
	}{
		{"at least %d characters", s.MinLength},
		{"at most %d characters", s.MaxLength},
		{"at least %d items", s.MinItems},
		{"at most %d items", s.MaxItems},
	} {
		if b.n != nil {
			words = append(words, fmt.Sprintf(b.word, *b.n))
		}
	}
	if s.Pattern != "" {
		words = append(words, "like "+s.Pattern)
	}
	return words
}

// docsExamples writes the examples as they go over the wire.
func docsExamples(op *kernel.Operation) (all []docsExample) {
	for _, e := range op.Shown() {
		d := docsExample{Name: e.Name, Summary: e.Summary, Request: op.Method + " " + exampleTarget(op) + "\n"}
		if !op.Anonymous {
			d.Request += "Authorization: Bearer curt_…\n"
		}
		for _, p := range op.Parameters {
			if p.In == "header" && p.Example != nil {
				d.Request += fmt.Sprintf("%s: %v\n", p.Name, p.Example)
			}
		}
		if e.Body != "" {
			d.Request += "Content-Type: application/json\n\n" + indented([]byte(e.Body))
		}
		for status, r := range op.Responses {
			for _, content := range r.Content {
				if said := content.Examples[e.Name]; said != nil {
					value, _ := said.Value.(json.RawMessage)
					n, _ := strconv.Atoi(status)
					d.Answer = status + " " + http.StatusText(n) + "\n\n" + indented(value)
				}
			}
		}
		if status := op.Answered[e.Name]; d.Answer == "" && status != 0 {
			d.Answer = strconv.Itoa(status) + " " + http.StatusText(status) + "\n"
		}
		all = append(all, d)
	}
	return all
}

// exampleTarget is the path and query that the parameters' examples make.
func exampleTarget(op *kernel.Operation) string {
	target, query := op.Path, []string(nil)
	for _, p := range op.Parameters {
		switch {
		case p.Example == nil:
		case p.In == "path":
			target = strings.ReplaceAll(target, "{"+p.Name+"}", fmt.Sprint(p.Example))
		case p.In == "query":
			query = append(query, fmt.Sprintf("%s=%v", p.Name, p.Example))
		}
	}
	if len(query) > 0 {
		target += "?" + strings.Join(query, "&")
	}
	return target
}

// indented writes JSON for people; a JSON string, which stands for a body that is no
// JSON, is that body.
func indented(text []byte) string {
	var body string
	if json.Unmarshal(text, &body) == nil {
		return body
	}
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}
