package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kind is a licence by its SPDX name, and what its text has and no other's.
type kind struct{ name, mark string }

// allowed are licences whose terms are met by passing their texts on, beside a program under
// the MIT licence. Those further up are looked for first: their texts hold others' marks.
func allowed() []kind {
	return []kind{
		{"MPL-2.0", "mozilla public license version 2.0"},
		{"Apache-2.0", "apache license version 2.0"},
		{"BSD-3-Clause", "neither the name of"},
		{"BSD-3-Clause", "may not be used to endorse or promote products"},
		{"BSD-2-Clause", "redistributions in binary form must reproduce the above copyright notice"},
		{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
		{"ISC", "copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
		{"ISC", "copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
		{"public domain", "dedicated to the public domain by"},
		{"CC0-1.0", "cc0 1.0 universal"},
		{"Unlicense", "this is free and unencumbered software released into the public domain"},
		{"Zlib", "this software is provided 'as-is', without any express or implied warranty"},
	}
}

// forbidden are words of licences that ask more: the same licence for all of the program, its
// source for users of a service, no trade, or a date. The Mozilla licence names some of them as
// ways out, which is not to ask for them.
func forbidden() []string {
	return []string{
		"gnu general public license", "gnu affero", "gnu lesser general public", "gnu library general public", "server side public license",
		"business source license", "commons clause", "elastic license", "attribution-noncommercial", "attribution-non-commercial", "noncommercial use only", "non-commercial use only", "non-commercial purposes only", "noncommercial purposes only", "sharealike", "share-alike",
		"european union public licence", "eclipse public license", "common development and distribution license", "polyform",
		"all rights reserved. no part", "prosperity public license", "json license", "shall be used for good, not evil",
	}
}

var space = regexp.MustCompile(`[\s*#]+`)

// classify returns which licence a text is.
func classify(text string) (string, error) {
	plain := space.ReplaceAllString(strings.ToLower(text), " ")
	plain = strings.NewReplacer("apache license, version 2.0", "apache license version 2.0", "mozilla public license, version 2.0", "mozilla public license version 2.0").Replace(plain)
	kinds := allowed()
	i := slices.IndexFunc(kinds, func(k kind) bool { return strings.Contains(plain, k.mark) })
	if i >= 0 && kinds[i].name == "MPL-2.0" {
		return kinds[i].name, nil
	}
	for _, words := range forbidden() {
		if strings.Contains(plain, words) {
			return "", fmt.Errorf("its licence says %q", words)
		}
	}
	if i < 0 {
		return "", fmt.Errorf("nobody knows its licence: %.60q", plain)
	}
	return kinds[i].name, nil
}
