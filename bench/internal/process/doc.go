// Package process starts the servers under measurement and reads what they cost:
// CPU time, memory, and on which machine that was. Everything comes from /proc,
// so it works on Linux only.
package process
