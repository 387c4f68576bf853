// Package redirecttest holds doubles of what package redirect asks for.
package redirecttest

import (
	"fmt"
	"html/template"

	"curt/internal/redirect"
)

// Pages are pages that say the least: the problem's type, the status, the destination,
// and where a link leads on.
type Pages struct{}

var _ redirect.Pages = Pages{}

// Policy implements redirect.Pages.
func (Pages) Policy() string { return "default-src 'none'" }

// Page implements redirect.Pages.
func (Pages) Page(p redirect.Problem, status int, destination, onward string) ([]byte, error) {
	page := fmt.Appendf(nil, "<!DOCTYPE html><title>%s</title><p>%d</p><p>%s</p>\n", p.Type(), status, template.HTMLEscapeString(destination))
	if onward != "" {
		page = fmt.Appendf(page, "<a href=\"%s\">on</a>\n", template.HTMLEscapeString(onward))
	}
	return page, nil
}
