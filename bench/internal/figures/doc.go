// Package figures measures what curt promises in numbers. Each figure is taken in
// several rounds, and in each round next to its baselines, every second round in
// the opposite order: a machine that slows down or speeds up shows in the ranges
// and cancels out in the ratios.
//
// Read bench.go for how a figure is taken; creates.go, cold.go, start.go and
// clicks.go are the figures.
package figures
