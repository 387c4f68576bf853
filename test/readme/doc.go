// Package readme does what README.md and docs/tutorial.md tell their reader, in their order and
// in an empty folder beside the sources: every line of its blocks, every command and every address
// of this server that their text names. table_test.go says what is done instead where that
// cannot be, and why; a line that is not there is typed as it stands.
package readme
