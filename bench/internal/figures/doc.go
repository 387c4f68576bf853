// Package figures takes figures. Each is taken in several rounds, and in each round next to its
// baselines, every second round in the opposite order: a machine that slows down or speeds up
// shows in the ranges and cancels out in the ratios.
//
// Read bench.go for how a figure is taken. The figures are in packages of their own, by what
// they measure: embedded, api, stress, postgres and redis.
package figures
