// Package redis proves what several servers over one database share through Redis, on the
// built binary and the real services: that a link killed on one is dead on all, that limits
// hold together, and that Redis may die, stall, fill up or forget everything without an
// answer to a visitor failing. Each fault has its control.
package redis
