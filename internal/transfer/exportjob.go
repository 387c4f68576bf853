package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"curt/internal/job"
	"curt/internal/link"
	"curt/internal/search"
	"curt/internal/shorten"
)

// ExportOptions say which links are written, and how.
type ExportOptions struct {
	Format string `json:"format,omitempty"` // jsonl or csv; "" = jsonl
	shorten.Question
}

// exportPage is how many links are saved at once.
const exportPage = 500

// exports writes the links that the caller sees and the options choose, oldest first.
func (s *Jobs) exports(ctx context.Context, t *job.Turn) error {
	var o ExportOptions
	if err := json.Unmarshal(t.Job.Options, &o); err != nil {
		return fmt.Errorf("read the options of a job: %w", err)
	}
	for ended := t.Job.Result > 0 && len(t.Job.Progress.Next) == 0; !ended; {
		var err error
		s.part(func() { err = s.page(ctx, t, o) })
		if err != nil {
			return err
		}
		ended = len(t.Job.Progress.Next) == 0
	}
	return nil
}

// page writes the next links and saves them.
func (s *Jobs) page(ctx context.Context, t *job.Turn, o ExportOptions) error {
	who, err := s.who(&t.Job)(ctx)
	if err != nil {
		return err
	}
	p := t.Job.Progress
	filter, err := s.Links.Filter(o.Question)
	if err != nil { // it was checked when the job was created, by a server of other settings
		return &job.FailError{Reason: err.Error()}
	}
	filter.Order = search.Oldest
	slice, err := s.Links.Find(ctx, s.Now(), who, filter, link.Page{After: link.Cursor(p.Next), Limit: min(exportPage, link.MaxPage)})
	if err != nil {
		return denied(err)
	}
	var text bytes.Buffer
	w := Writer{Out: &text, CSV: o.Format == CSV}
	if t.Job.Result == 0 {
		err = w.Header()
	}
	for i := 0; i < len(slice.Links) && err == nil; i++ {
		err = w.Link(slice.Links[i])
	}
	if err != nil {
		return err
	}
	p.Rows += int64(len(slice.Links))
	p.Created, p.Next = p.Rows, []byte(slice.Next)
	return t.Save(ctx, p, text.Bytes())
}
