package httpapi

import (
	_ "embed" // examples.json
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// example is a request that the description shows. Its parameters are those that
// have an example of their own; what it is answered was recorded by the test that
// sends it (make api), so that no example says what the API does not do.
type example struct {
	name    string // what it shows, unique within its operation
	summary string
	body    string // JSON
}

// onlyExample is the name of the example of an operation without a body.
const onlyExample = "example"

// recorded is what an example was answered.
type recorded struct {
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer,omitempty"` // JSON, or a string for other media
}

//go:embed examples.json
var examplesSource []byte

// recordings are by the operation's id and the example's name.
type recordings map[string]map[string]recorded

func loadRecordings() (recordings, error) {
	var r recordings
	if err := json.Unmarshal(examplesSource, &r); err != nil {
		return nil, fmt.Errorf("examples of the API: %w", err)
	}
	return r, nil
}

// show puts the examples of an operation into its description.
func (r recordings) show(op *operation) {
	for _, e := range op.shown() {
		if e.body != "" {
			put(op.RequestBody.Content["application/json"], e, json.RawMessage(e.body))
		}
		said, ok := r[op.OperationID][e.name]
		if !ok {
			continue
		}
		if op.answered == nil {
			op.answered = map[string]int{}
		}
		op.answered[e.name] = said.Status
		if said.Answer == nil {
			continue
		}
		if response := op.Responses[strconv.Itoa(said.Status)]; response != nil {
			if content := mainContent(response); content != nil {
				put(content, e, said.Answer)
			}
		}
	}
}

// shown are the examples of an operation: those it names, or the one that its
// parameters make.
func (op *operation) shown() []example {
	if len(op.examples) == 0 && op.RequestBody == nil {
		return []example{{name: onlyExample}}
	}
	return op.examples
}

func put(content *huma.MediaType, e example, value json.RawMessage) {
	if content.Examples == nil {
		content.Examples = map[string]*huma.Example{}
	}
	content.Examples[e.name] = &huma.Example{Summary: e.summary, Value: value}
}

// mainContent is what a client that asks for nothing special gets: JSON or SVG,
// where there is a choice.
func mainContent(r *huma.Response) *huma.MediaType {
	for _, media := range []string{"application/json", "application/problem+json", "image/svg+xml"} {
		if c := r.Content[media]; c != nil {
			return c
		}
	}
	var names []string
	for name := range r.Content {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	return r.Content[slices.Min(names)]
}
