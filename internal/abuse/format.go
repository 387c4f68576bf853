package abuse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"curt/internal/weburl"
)

const (
	// MaxHosts bounds the hosts of all lists together; at 8 bytes each, 80 MB.
	MaxHosts = 10_000_000
	// maxFile bounds one file. Ten million of the longest usual names fit.
	maxFile = 1 << 30
	// maxLine is far beyond what a hosts file has on a line.
	maxLine = 64 << 10
)

// Why a file is not taken. The list in use stays as it is.
var (
	ErrFile    = errors.New("want a readable file with a host on each line")
	ErrDamaged = errors.New("the file is damaged")
	ErrTooMany = fmt.Errorf("the lists have more than %d hosts", MaxHosts)
)

// strange are the lines of a list that nothing can be made of.
type strange struct{ lines, first int }

func (s *strange) add(number int) {
	if s.lines++; s.lines == 1 {
		s.first = number
	}
}

// parse calls keep with each host of a list, in the form of weburl.ParseHost. A list
// has a host on each line, or an address and then hosts, as a hosts file; "*." and "."
// in front of a host change nothing. What follows a "#" is a comment, and so is what
// follows a "!" or ";" at the beginning of a line or behind white space. A name without
// a dot is passed over: hosts files call the machine itself so. What else stands in a
// list forbids nothing, and is counted.
//
// ErrDamaged is for what no whole list can be: a file without a byte, a NUL byte, a
// line without end, which is what a copy under way looks like, and a file most of whose
// lines are something else, as a page that says why there is no list.
func parse(r io.Reader, keep func(host string) error) (strange, error) {
	in := bufio.NewReaderSize(r, maxLine)
	var bad strange
	var good, number int
	for {
		line, err := in.ReadSlice('\n')
		number++
		switch {
		case err == io.EOF && len(line) == 0 && number > 1:
			if bad.lines > good {
				return bad, fmt.Errorf("%w: %d lines are no hosts, %d are", ErrDamaged, bad.lines, good)
			}
			return bad, nil
		case err == io.EOF && len(line) == 0:
			return bad, fmt.Errorf("%w: it is empty", ErrDamaged)
		case err == io.EOF:
			return bad, fmt.Errorf("%w: line %d has no end", ErrDamaged, number)
		case errors.Is(err, bufio.ErrBufferFull):
			return bad, fmt.Errorf("%w: line %d is longer than %d bytes", ErrDamaged, number, maxLine)
		case err != nil:
			return bad, fmt.Errorf("%w: %w", ErrFile, err)
		case bytes.IndexByte(line, 0) >= 0:
			return bad, fmt.Errorf("%w: line %d has a NUL byte", ErrDamaged, number)
		}
		hosts, ok := hostsOf(string(line))
		switch {
		case !ok:
			bad.add(number)
		case len(hosts) > 0:
			good++
		}
		for _, host := range hosts {
			if err := keep(host); err != nil {
				return bad, err
			}
		}
	}
}

// hostsOf returns the hosts of a line; ok is false when it is something else.
func hostsOf(line string) (hosts []string, ok bool) {
	line, _, _ = strings.Cut(strings.TrimPrefix(line, "\ufeff"), "#")
	fields := strings.Fields(line)
	if note := slices.IndexFunc(fields, beginsNote); note >= 0 {
		fields = fields[:note]
	}
	if len(fields) > 1 {
		if _, err := netip.ParseAddr(fields[0]); err != nil {
			return nil, false
		}
		fields = fields[1:]
	}
	for _, field := range fields {
		host, err := weburl.ParseHost(strings.TrimPrefix(strings.TrimPrefix(field, "*."), "."))
		switch {
		case err != nil:
			return nil, false
		case strings.ContainsAny(host, ".:") && strings.ContainsFunc(field, isBorder):
			hosts = append(hosts, host)
		}
	}
	return hosts, true
}

func beginsNote(field string) bool { return field[0] == '!' || field[0] == ';' }

// isBorder finds what stands between the parts of a name (UTS 46 has four dots) or of
// an address. A bare number would be an address to a browser, and is none in a list.
func isBorder(r rune) bool { return strings.ContainsRune(".:\u3002\uff0e\uff61", r) }
