// Package probe adds a field to a link in a copy of the project and counts the files that this
// takes; what comes of it is a later release, which serves beside this one and gives its data
// back to it.
package probe
