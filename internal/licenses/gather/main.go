// Command gather collects the licences of everything that is compiled into curt from the
// modules and packages themselves, and refuses what does not allow distribution under the MIT
// licence. Its result is for package licenses; with -check it leaves none. It runs at the
// top of the repository: scripts/licenses.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"curt/internal/backend/countries"
	"curt/internal/licenses"
)

func main() {
	check := flag.Bool("check", false, "judge, and write nothing")
	flag.Parse()
	if err := gather(context.Background(), *check); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func gather(ctx context.Context, check bool) error {
	// As releases are: see .goreleaser.yaml.
	parts, err := goParts(ctx, []string{"./cmd/curt", "./internal/backend/countries/pack"}, []string{"linux/amd64", "linux/arm64", "darwin/arm64"})
	if err != nil {
		return err
	}
	dashboard, err := npmParts("web")
	if err != nil {
		return err
	}
	parts = append(parts, dashboard...)
	if err := judge(parts); err != nil || check {
		return err
	}
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed) // without a time: the same parts are the same bytes
	if _, err := w.Write([]byte(text(string(own), parts))); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("internal", "licenses", "texts", licenses.File), packed.Bytes(), 0o644) //nolint:gosec // for everybody
}

// judge wants a licence of each part; classify has refused those that are none of ours.
func judge(parts []part) error {
	var wrong []error
	for _, p := range parts {
		if len(p.kinds) == 0 {
			wrong = append(wrong, fmt.Errorf("%s %s has no licence", p.name, p.version))
		}
	}
	return errors.Join(wrong...)
}

// text is what people read: a list, then each text once, with the parts that it is of.
func text(own string, parts []part) string {
	var b strings.Builder
	b.WriteString("curt\n\n" + strings.TrimSpace(own) + "\n\nThe program also has parts of others, which this is all of:\n\n")
	of := map[string][]string{}
	var order []string
	for _, p := range parts {
		fmt.Fprintf(&b, "  %s %s: %s (%s)\n", p.name, p.version, strings.Join(p.kinds, ", "), p.source)
		for _, t := range p.texts {
			if of[t] == nil {
				order = append(order, t)
			}
			of[t] = append(of[t], p.name)
		}
	}
	if slices.ContainsFunc(parts, func(p part) bool { return p.name == countries.Module }) {
		b.WriteString("\n" + countries.Attribution + "\nThat data, of countries, is in " + countries.Module + ", packed and otherwise unchanged, under another licence than its code:\n" + countries.License + "\n")
	}
	b.WriteString("\nOf parts under the Mozilla Public License the source is where the list says how to get it.\n")
	for _, t := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(of[t], "\n"), t)
	}
	return b.String()
}
