package main

import "curt/internal/licenses"

type licensesCmd struct{}

// Run prints the texts.
func (licensesCmd) Run(t terminal) error { return licenses.WriteTo(t.out) }
