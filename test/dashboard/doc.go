// Package dashboard proves the dashboard of the built binary in Chromium (drive.mjs): a
// person signs in, makes, finds, changes and deletes links among 100,000 with five million
// clicks, by keyboard and by pointer, sees clicks arrive, and is told what fails, on a phone
// and on a desk, in light and in dark; what was typed outlives a sheet, a colleague and a lost
// connection. No screen may have a fault of accessibility or a line
// in the console, which is where a breach of the policy would stand, whatever strangers put
// into links. What everybody opens is fast on a slow processor, and as Lighthouse has it
// (speed.mjs).
package dashboard
