package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// page is where the result of a run stays.
const page = "docs/internals/mutants.md"

// figures are the counts of a target.
type figures struct {
	Tried, Own, Late, Outside, Equivalent, Accepted int
	Without                                         []result // survivors without a reason
}

func (f figures) killed() int { return f.Own + f.Outside }

// share is what counts: killed of those that are not equivalent, in percent.
func (f figures) share() float64 {
	return 100 * float64(f.killed()) / float64(max(1, f.Tried-f.Equivalent))
}

// reason says why a survivor may live.
type reason struct {
	Equivalent bool
	Why        string
}

// report writes the page, and fails when a survivor has no reason.
func (r *run) report() error {
	reasons, err := readReasons(r.root)
	if err != nil {
		return err
	}
	var table, list strings.Builder
	var total figures
	used := map[string]bool{}
	for _, t := range targets() {
		f := r.count(t, reasons, used, &list)
		total.Tried, total.Own, total.Late, total.Outside = total.Tried+f.Tried, total.Own+f.Own, total.Late+f.Late, total.Outside+f.Outside
		total.Equivalent, total.Accepted = total.Equivalent+f.Equivalent, total.Accepted+f.Accepted
		total.Without = append(total.Without, f.Without...)
		row(&table, t.Name, f)
	}
	row(&table, "**all**", total)
	fmt.Print(table.String())
	for _, one := range total.Without {
		fmt.Printf("no reason: line %d of %s\n", one.Line, one.describe())
	}
	for _, id := range slices.Sorted(maps.Keys(reasons)) {
		if !used[id] {
			fmt.Printf("reason for no survivor: %s\n", id)
		}
	}
	if len(total.Without) > 0 {
		return fmt.Errorf("%d survivors have no reason in test/mutants/reasons.txt, so %s is not written", len(total.Without), page)
	}
	text, err := os.ReadFile(filepath.Join(r.root, "test", "mutants", "page.md"))
	if err != nil {
		return fmt.Errorf("read the page's text: %w", err)
	}
	summary := fmt.Sprintf("%d mutants, %d equivalent; of the others %d killed: **%.1f %%**.", total.Tried, total.Equivalent, total.killed(), total.share())
	written := strings.NewReplacer("{{summary}}", summary, "{{table}}", table.String(), "{{survivors}}", list.String()).Replace(string(text))
	if err := os.MkdirAll(filepath.Join(r.root, filepath.Dir(page)), 0o750); err != nil {
		return fmt.Errorf("make a folder for the page: %w", err)
	}
	return os.WriteFile(filepath.Join(r.root, page), []byte(strings.TrimSpace(written)+"\n"), 0o644) //nolint:gosec // it is committed
}

func row(w *strings.Builder, name string, f figures) {
	fmt.Fprintf(w, "| %s | %d | %d (%d) | %d | %d | %d | %.1f %% |\n", name, f.Tried, f.Own, f.Late, f.Outside, f.Equivalent, f.Accepted, f.share())
}

// count adds up a target, and lists its survivors.
func (r *run) count(t target, reasons map[string]reason, used map[string]bool, list *strings.Builder) figures {
	var f figures
	var lines []string
	for _, m := range r.sample(t) {
		one, _ := r.known(m)
		f.Tried++
		why, given := reasons[m.ID]
		switch {
		case one.Verdict == killed && one.Outside:
			f.Outside++
		case one.Verdict == killed:
			f.Own++
			if one.Late {
				f.Late++
			}
		case !given:
			f.Without = append(f.Without, one)
		default:
			used[m.ID] = true
			kind := "accepted"
			if why.Equivalent {
				kind = "equivalent"
				f.Equivalent++
			} else {
				f.Accepted++
			}
			lines = append(lines, fmt.Sprintf("- `%s` %s\n  **%s**: %s\n", m.ID, m.describe(), kind, why.Why))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(list, "\n### %s\n\n%s", strings.ToUpper(t.Name[:1])+t.Name[1:], strings.Join(lines, ""))
	}
	return f
}

// describe is the mutant in one line.
func (m mutant) describe() string {
	from, to := strings.Join(strings.Fields(m.From), " "), strings.Join(strings.Fields(m.To), " ")
	if to == "" {
		to = "nothing"
	} else {
		to = "`" + to + "`"
	}
	return fmt.Sprintf("`%s:%s`, %s: `%s` → %s", m.File, m.Func, m.Operator, from, to)
}

// readReasons reads lines of an ID, "equivalent:" or "accepted:", and why.
func readReasons(root string) (map[string]reason, error) {
	f, err := os.Open(filepath.Join(root, "test", "mutants", "reasons.txt"))
	if err != nil {
		return nil, fmt.Errorf("read reasons: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	reasons := map[string]reason{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, rest, _ := strings.Cut(line, " ")
		kind, why, ok := strings.Cut(rest, ": ")
		if !ok || kind != "equivalent" && kind != "accepted" {
			return nil, fmt.Errorf("reasons.txt: %q is neither equivalent nor accepted", line)
		}
		reasons[id] = reason{Equivalent: kind == "equivalent", Why: why}
	}
	return reasons, lines.Err()
}
