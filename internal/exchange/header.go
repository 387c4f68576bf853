package exchange

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// synonyms are the names that other shorteners' exports give to the fields of a link,
// without case, spaces and signs: Bitly, Dub, Kutt, Polr, Rebrandly, Shlink, Short.io,
// TinyURL, YOURLS, and what people type. Of several columns for one field the one whose
// name stands first here counts.
func synonyms() map[string][]string {
	return map[string][]string{
		"long_url": {
			"longurl", "destinationurl", "destination", "originalurl", "original", "targeturl", "target", "redirecturl",
			"redirectto", "longlink", "url", "location",
		},
		// Bitly's own codes are in "link", those that people chose in "custom_bitlinks".
		"short_code": {
			"shortcode", "custombitlinks", "custombitlink", "custombackhalf", "customalias", "backhalf", "alias", "slug",
			"keyword", "code", "key", "slashtag", "path", "address", "vanity", "shorturl", "shortlink", "bitlink", "tinyurl",
			"short", "link",
		},
		"title":           {"title", "name", "label", "description", "note", "comment"},
		"tags":            {"tags", "tag", "labels"},
		"starts_at":       {"startsat", "validsince", "startdate"},
		"expires_at":      {"expiresat", "expires", "expireat", "expirydate", "expirationdate", "expiration", "expire", "validuntil", "expirein"},
		"max_clicks":      {"maxclicks", "maxvisits", "clicklimit", "clickslimit"},
		"redirect_status": {"redirectstatus", "redirecttype", "redirectcode", "statuscode"},
		"fallback_url":    {"fallbackurl", "expiredurl", "expiredredirecturl"},
		"forward_query":   {"forwardquery"},
		"noindex":         {"noindex"},
		"cacheable":       {"cacheable"},
	}
}

// otherCode is the field of a column with the code of the links whose short_code is empty:
// Bitly leaves custom_bitlinks empty for the links whose codes are its own.
const otherCode = "short_code if that is empty"

var errNoURL = errors.New("no long URL")

// Header says which column of a file is which field of a link.
type Header struct {
	Fields  []string // by column; "" = ignored
	Ignored []string // names of the columns that no field takes
	Data    bool     // the first line is no header, but the first link
}

// Used describes the columns for people.
func (h Header) Used(names []string) (text []string) {
	for i, f := range h.Fields {
		switch {
		case f == "":
		case i < len(names) && !h.Data:
			text = append(text, fmt.Sprintf("%q is %s", shown(names[i]), f))
		default:
			text = append(text, fmt.Sprintf("column %d is %s", i+1, f))
		}
	}
	return text
}

// Column is a column of a file.
type Column struct {
	Name   string // "" = the file has no names
	Field  string // of a link; "" = none
	Sample string // its cell in the first row
}

// columns are those of a file, for people.
func (h Header) columns(names, sample []string) []Column {
	all := make([]Column, len(names))
	for i, name := range names {
		if !h.Data {
			all[i].Name = shown(name)
		}
		if i < len(sample) {
			all[i].Sample = shown(sample[i])
		}
		if i < len(h.Fields) {
			all[i].Field = h.Fields[i]
		}
		if all[i].Field == otherCode {
			all[i].Field = "short_code"
		}
	}
	return all
}

// NoURLError refuses a file of which no column holds the long URLs.
type NoURLError struct {
	Columns []Column
	names   []string
}

func (e *NoURLError) Error() string {
	return fmt.Sprintf("no column with long URLs; set it with --map long_url=NAME (found: %s)", e.Found())
}

// Found are the names of the columns.
func (e *NoURLError) Found() string { return shown(strings.Join(e.names, ", ")) }

// readHeader understands the first line of a file. chosen maps a field to the column that the
// caller wants for it: its name, "#" and its number from 1, or "" = none.
func readHeader(names []string, chosen map[string]string) (Header, error) {
	named, err := understand(names, nil)
	if err != nil {
		return named, err
	}
	if data, ok := withoutHeader(names); ok && !slices.Contains(named.Fields, "long_url") && allPlaces(chosen) {
		return data.choose(names, chosen)
	}
	h, err := understand(names, chosen)
	if err == nil && !slices.Contains(h.Fields, "long_url") {
		err = &NoURLError{h.columns(names, nil), names}
	}
	return h, err
}

// place returns the index of the column that is chosen by "#" and its number.
func place(column string) (i int, ok bool) {
	text, ok := strings.CutPrefix(column, "#")
	n, err := strconv.Atoi(text)
	return n - 1, ok && err == nil && n > 0
}

func allPlaces(chosen map[string]string) bool {
	for _, column := range chosen {
		if _, ok := place(column); column != "" && !ok {
			return false
		}
	}
	return true
}

// choose applies a choice of columns to a file that has no names.
func (h Header) choose(names []string, chosen map[string]string) (Header, error) {
	for field := range chosen {
		if i := slices.Index(h.Fields, field); i >= 0 {
			h.Fields[i] = ""
		}
	}
	for field, column := range chosen {
		i, ok := place(column)
		switch {
		case !slices.Contains(Columns(), field):
			return h, unknownField(field)
		case ok && i >= len(names):
			return h, noColumn(column)
		case ok:
			h.Fields[i] = field
		}
	}
	if !slices.Contains(h.Fields, "long_url") {
		return h, &NoURLError{h.columns(names, names), names}
	}
	return h, nil
}

func unknownField(field string) error {
	return fmt.Errorf("unknown link field %q: expected one of %s", shown(field), strings.Join(Columns(), " "))
}

func noColumn(column string) error { return fmt.Errorf("no column is named %q", shown(column)) }

// understand finds out which fields names stand for.
func understand(names []string, chosen map[string]string) (Header, error) {
	h := Header{Fields: make([]string, len(names))}
	plain := make([]string, len(names))
	ours := 0
	for i, n := range names {
		plain[i] = bare(n)
		if slices.Contains(Columns(), strings.TrimSpace(n)) {
			ours++
		}
	}
	for field, column := range chosen {
		if !slices.Contains(Columns(), field) {
			return h, unknownField(field)
		}
		i, ok := place(column)
		if !ok {
			i = slices.Index(plain, bare(column))
		}
		if column != "" && (i < 0 || i >= len(names)) {
			return h, noColumn(column)
		}
		if column != "" {
			h.Fields[i] = field
		}
	}
	if ours == len(Columns()) { // an export of ours
		for i, n := range names {
			h.take(i, strings.TrimSpace(n), chosen)
		}
	}
	for field, others := range synonyms() {
		for _, name := range others {
			if h.take(slices.Index(plain, name), field, chosen) {
				break
			}
		}
	}
	h.takeOther(plain, chosen)
	if h.inOurNames(names) {
		h.take(slices.Index(plain, "domain"), "domain", chosen)
	}
	for i, f := range h.Fields {
		if f == "" {
			h.Ignored = append(h.Ignored, shown(names[i]))
		}
	}
	return h, nil
}

// inOurNames reports whether the columns of URLs and codes are called as the API calls
// them. Then a domain is one of ours; in the exports of others it is a host of theirs.
func (h *Header) inOurNames(names []string) bool {
	for i, f := range h.Fields {
		name := strings.TrimSpace(names[i])
		if f == "long_url" && name != "long_url" || f == "short_code" && name != "short_code" && name != "custom_alias" {
			return false
		}
	}
	return slices.Contains(h.Fields, "long_url")
}

// take makes a column a field, if neither is taken.
func (h *Header) take(i int, field string, chosen map[string]string) bool {
	if _, decided := chosen[field]; decided || slices.Contains(h.Fields, field) {
		return true
	}
	if i < 0 || h.Fields[i] != "" {
		return false
	}
	h.Fields[i] = field
	return true
}

// takeOther finds the column of otherCode, in exports of Bitly.
func (h *Header) takeOther(plain []string, chosen map[string]string) {
	i := slices.Index(h.Fields, "short_code")
	if _, decided := chosen["short_code"]; decided || i < 0 || !slices.Contains([]string{"custombitlinks", "custombitlink"}, plain[i]) {
		return
	}
	for _, name := range []string{"link", "bitlink", "id"} {
		if i := slices.Index(plain, name); i >= 0 && h.Fields[i] == "" {
			h.Fields[i] = otherCode
			return
		}
	}
}

// withoutHeader reads a file that begins with a link: URL, or URL and code, or code and
// URL.
func withoutHeader(cells []string) (h Header, ok bool) {
	h = Header{Fields: make([]string, len(cells)), Data: true}
	i := slices.IndexFunc(cells, func(c string) bool { return strings.Contains(c, "://") })
	if i < 0 || i > 1 {
		return h, false
	}
	h.Fields[i] = "long_url"
	if len(cells) > 1 {
		h.Fields[1-i] = "short_code"
	}
	return h, true
}

// record returns the link of a row, of which there are at most as many cells as columns.
func (h *Header) record(cells []string) (r Record, err error) {
	other := ""
	for i, cell := range cells {
		field := h.Fields[i]
		if field == "short_code" {
			cell = codeOf(cell)
		}
		switch field {
		case "":
			continue
		case otherCode:
			other = codeOf(cell)
			continue
		}
		if err := r.read(field, cell); err != nil {
			return r, err
		}
	}
	if r.Code == "" {
		r.Code = other
	}
	if r.LongURL == "" && r.Status != "deleted" {
		return r, errNoURL
	}
	return r, nil
}

// bare is a name without case, spaces and signs.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return -1
	}, name)
}

// codeOf returns the code of a cell that may be a whole short URL, or Bitly's list of
// them, of which the first counts.
func codeOf(cell string) string {
	cell = strings.Trim(cell, `[]"' `)
	cell, _, _ = strings.Cut(cell, ",")
	cell, _, _ = strings.Cut(cell, "?")
	cell = strings.Trim(cell, `"' /`)
	return cell[strings.LastIndexByte(cell, '/')+1:]
}
