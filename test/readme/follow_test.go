package readme_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// told returns what a page tells its reader to type or to open, in its order: the lines
// of blocks, where a line that ends in \ goes on with the next, and of its text the code
// spans that begin with the command, and the addresses of the server. A block of text is a
// file to write, and not followed; any other block that is not for a shell is a fault.
func told(page string) (lines []string, faults []string) {
	named := regexp.MustCompile("`((?:bin/)?curt [^`]+)`|<(http://localhost:8080[^>]*)>")
	fence, begun := "", ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if mark, ok := strings.CutPrefix(line, "```"); ok {
			if fence != "" {
				fence = ""
				continue
			}
			fence = "```" + mark
			if mark != "sh" && mark != "text" {
				faults = append(faults, fmt.Sprintf("a block begins with %q: nobody knows how to follow it", fence))
			}
			continue
		}
		if fence == "" {
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				lines = append(lines, m[1]+m[2])
			}
			continue
		}
		if fence == "```text" {
			continue
		}
		begun += strings.TrimSpace(line)
		if rest, ok := strings.CutSuffix(begun, `\`); ok {
			begun = strings.TrimSpace(rest) + " "
		} else if begun != "" {
			lines, begun = append(lines, begun), ""
		}
	}
	return lines, faults
}

// reader follows a page.
type reader struct {
	rows []row
	typ  func(command string) (answer string, err error)
	open func(address string) (answer string, err error)
	stay func(command string) // returns when the server answers
}

// follow does what a page says and returns what went wrong, and how many lines were done.
func (r reader) follow(page string) (faults []string, done int) {
	lines, faults := told(page)
	met := make([]bool, len(r.rows))
	code := "CODE"
	for _, line := range lines {
		i := slices.IndexFunc(r.rows, func(known row) bool { return known.line == line })
		known := row{line: line}
		if i >= 0 {
			known, met[i] = r.rows[i], true
		}
		if known.skip != "" {
			continue
		}
		done++
		answer, err := r.do(known, code)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v\n%s", line, err, answer))
			continue
		}
		if m := regexp.MustCompile(`(?m)^http://localhost:8080/(\w+)$`).FindStringSubmatch(answer); m != nil && code == "CODE" {
			code = m[1]
		}
		says := strings.ReplaceAll(known.says, "CODE", code)
		if !regexp.MustCompile(says).MatchString(answer) {
			faults = append(faults, fmt.Sprintf("%s: printed\n%s\nwant %s", line, answer, says))
		}
	}
	for i, known := range r.rows {
		if !met[i] {
			faults = append(faults, fmt.Sprintf("%s: the table knows it, and the page does not say it", known.line))
		}
	}
	return faults, done
}

func (r reader) do(known row, code string) (string, error) {
	command := known.line
	if known.do != "" {
		command = known.do
	}
	command = strings.ReplaceAll(command, "CODE", code)
	switch {
	case known.stays:
		r.stay(command)
		return "", nil
	case strings.HasPrefix(command, "http://"):
		return r.open(command)
	default:
		return r.typ(command)
	}
}

// The control: what does not work, and what the table has for nothing, is found.
func TestFollowing(t *testing.T) {
	page := "Type `curt sing` and see <http://localhost:8080/x>, `CURT_DATA` or `curt`.\n" +
		"```sh\nbin/curt shorten \\\n   it\nbin/curt stats CODE\n\nfalse\n```\n```text\nCURT_X=1\n```\n```console\n$ x\n```\n"
	var typed []string
	r := reader{
		rows: []row{{line: "curt sing", do: "curt hum", says: "la"}, {line: "bin/curt stats CODE", says: "^CODE$"}, {line: "curt dance"}},
		typ: func(command string) (string, error) {
			typed = append(typed, command)
			switch command {
			case "bin/curt shorten it":
				return "http://localhost:8080/a1\n", nil
			case "false":
				return "", fmt.Errorf("exit 1")
			}
			return "silence", nil
		},
		open: func(address string) (string, error) { return "", fmt.Errorf("404 %s", address) },
	}
	faults, done := r.follow(page)
	if want := []string{"curt hum", "bin/curt shorten it", "bin/curt stats a1", "false", "$ x"}; !slices.Equal(typed, want) || done != 6 {
		t.Errorf("typed %q in %d steps, want %q", typed, done, want)
	}
	said := strings.Join(faults, "\n")
	for _, want := range []string{"curt sing: printed", "404 http://localhost:8080/x", "want ^a1$", "false: exit 1", "```console", "curt dance: the table"} {
		if !strings.Contains(said, want) {
			t.Errorf("no fault says %q:\n%s", want, said)
		}
	}
	if len(faults) != 6 {
		t.Errorf("%d faults:\n%s", len(faults), said)
	}
}
