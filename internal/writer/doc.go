// Package writer brings pending links from Kafka into the link store, at a rate that the store can bear.
//
// Every record is written at least once, and a link once: a create with the id and the code of a link that
// is there changes nothing. An offset is committed after the store acknowledged all records before it, so that
// whoever accepted them may take a committed record for written. A writer that is killed between the two, or that
// lost a partition to another one, therefore repeats some creates, and that is all.
//
// What can never be written is a dead letter: it is kept in a topic of its own with the reason, and where its code is known
// a tombstone takes the code and bears the reason, so that visitors are told 410 and why, instead of 404.
//
// Read writer.go first, then batch.go, which has one round.
package writer
