package apidocs

import (
	_ "embed" // examples.json
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/httpapi/kernel"
)

// recorded is what an example was answered.
type recorded struct {
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer,omitempty"` // JSON, or a string for other media
}

//go:embed examples.json
var examplesSource []byte

// recordings are by the operation's id and the kernel.Example's name.
type recordings map[string]map[string]recorded

// ShowExamples puts the kernel.Examples of the operations into their descriptions.
func ShowExamples(operations []*kernel.Operation) error {
	var r recordings
	if err := json.Unmarshal(examplesSource, &r); err != nil {
		return fmt.Errorf("examples of the API: %w", err)
	}
	for _, op := range operations {
		r.show(op)
	}
	return nil
}

// show puts the kernel.Examples of an operation into its description.
func (r recordings) show(op *kernel.Operation) {
	for _, e := range op.Shown() {
		if e.Body != "" {
			put(op.RequestBody.Content["application/json"], e, json.RawMessage(e.Body))
		}
		said, ok := r[op.OperationID][e.Name]
		if !ok {
			continue
		}
		if op.Answered == nil {
			op.Answered = map[string]int{}
		}
		op.Answered[e.Name] = said.Status
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

func put(content *huma.MediaType, e kernel.Example, value json.RawMessage) {
	if content.Examples == nil {
		content.Examples = map[string]*huma.Example{}
	}
	content.Examples[e.Name] = &huma.Example{Summary: e.Summary, Value: value}
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
