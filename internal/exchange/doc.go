// Package exchange writes links as text and reads what other shorteners and people
// write: JSON Lines, which lose nothing, and CSV.
//
// What is read is hostile: a byte order mark, NUL bytes, quotes in the wrong places,
// fields without end, other encodings. Each row that cannot be read has an error of its
// own and the next one is read all the same; what is held in memory is bounded
// (MaxRow). No cell is ever evaluated.
//
// Read record.go for what a link is as text, header.go for the names of columns that are
// understood, csv.go and lines.go for how rows are found.
package exchange
