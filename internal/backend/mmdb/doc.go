// Package mmdb tells where addresses are, from one .mmdb file: a city, country or
// network database of MaxMind, DB-IP, IPinfo or anybody who writes the format.
//
// The operator's file is believed to be neither whole nor honest. [Open] refuses
// only what is no file; a file that is damaged, or is damaged while the process
// runs, gives unknown places, never a failure. The file is read into memory: a
// mapped one that somebody truncates would kill the process. [Database.Run] reads
// it anew when it has changed.
//
// What is kept of a place is its country, its city and the organisation that runs
// the network. The network's prefix is not: some databases go down to single
// addresses, and no address may come to rest.
package mmdb
