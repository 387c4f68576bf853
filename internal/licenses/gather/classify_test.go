package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClassify: what asks more than that its text is passed on is refused, and so is what
// nobody has heard of.
func TestClassify(t *testing.T) {
	const mit = "MIT License\n\nPermission is hereby granted, free of charge, to any person\nobtaining a copy of this software"
	for _, c := range []struct{ text, want string }{
		{mit, "MIT"},
		{"Apache License\n                           Version 2.0, January 2004", "Apache-2.0"},
		{"Mozilla Public License Version 2.0\n... \"Secondary License\" means either the GNU General Public License", "MPL-2.0"},
		{"Redistributions in binary form must reproduce the above\n * copyright notice\nNeither the name of Google", "BSD-3-Clause"},
		{"2. Redistributions in binary form must reproduce the above copyright notice", "BSD-2-Clause"},
		{"Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee is hereby granted", "ISC"},
		{"This is free and unencumbered software released into the public domain. ... commercial or non-commercial", "Unlicense"},
		{"GNU GENERAL PUBLIC LICENSE\nVersion 3", ""},
		{"GNU AFFERO GENERAL PUBLIC LICENSE", ""},
		{"GNU LESSER GENERAL PUBLIC LICENSE", ""},
		{mit + "\nor, at your choice, the GNU General Public License", ""},
		{mit + "\nThe \"Commons Clause\" License Condition v1.0", ""},
		{"Server Side Public License", ""},
		{"Business Source License 1.1", ""},
		{"Creative Commons Attribution-NonCommercial 4.0", ""},
		{"Creative Commons Attribution-ShareAlike 4.0", ""},
		{mit + "\nThe Software shall be used for Good, not Evil.", ""},
		{"Copyright (c) 2026 Somebody. All rights reserved.", ""},
		{"", ""},
	} {
		got, err := classify(c.text)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%.60q: %q, %v, want %q", c.text, got, err, c.want)
		}
	}
}

// TestPartsWithoutALicenceAreRefused: neither silence nor a notice allows anything.
func TestPartsWithoutALicenceAreRefused(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("license.go", "package x")
	write("NOTICE", "made by somebody")
	p := part{name: "x", version: "v1"}
	if err := p.add(folder); err != nil || len(p.texts) != 1 {
		t.Fatalf("%v %v", p, err)
	}
	if err := judge([]part{p}); err == nil || !strings.Contains(err.Error(), "x v1 has no licence") {
		t.Errorf("%v", err)
	}
	write("LICENSE.md", "GNU General Public License")
	if err := p.add(folder); err == nil {
		t.Error("it is taken")
	}
}

// TestWhatIsCompiledInMayBe is the check itself, of the modules; scripts/licenses -check is it
// with the dashboard's packages.
func TestWhatIsCompiledInMayBe(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	parts, err := goParts(t.Context(), []string{"./cmd/curt", "./internal/backend/countries/pack"}, []string{"linux/amd64"})
	if err != nil {
		t.Fatal(err)
	}
	if err := judge(parts); err != nil || len(parts) < 50 {
		t.Errorf("%d parts: %v", len(parts), err)
	}
	told := text("ours", parts)
	for _, want := range []string{"Go go1.", "go.mau.fi/util v", "MPL-2.0", "Mozilla Public License", "Permission is hereby granted", "Apache License", "IP2Location LITE data available from", "creativecommons.org/licenses/by-sa/4.0"} {
		if !strings.Contains(told, want) {
			t.Errorf("the text has no %q", want)
		}
	}
}

func TestNPMParts(t *testing.T) {
	folder := t.TempDir()
	lock := `{"packages":{"":{"name":"x"},"node_modules/a":{"version":"1.0.0"},"node_modules/tool":{"version":"2.0.0","dev":true}}}`
	put := func(name, text string) {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("package-lock.json", lock)
	if _, err := npmParts(folder); err == nil || !strings.Contains(err.Error(), "scripts/web") {
		t.Errorf("nothing is installed: %v", err)
	}
	put("node_modules/a/package.json", `{"license":"GPL-3.0-only"}`)
	if _, err := npmParts(folder); err == nil {
		t.Error("GPL is taken")
	}
	put("node_modules/a/package.json", `{"license":"MIT"}`)
	if parts, err := npmParts(folder); err != nil || len(parts) != 1 || parts[0].name != "a" {
		t.Errorf("%v %v", parts, err)
	}
}
