// Package agents says how well user agents are told apart: robots from people, and people's
// devices and systems. The user agents are those that others have collected, not those that the
// parsers were made with: crawler-user-agents, with what robots have sent, and user-agents, with
// what browsers have, weighted by how often. scripts/npm installs both, pinned by their digests.
//
// Floors are below what is found, so that they fail when something breaks and not when a
// list grows. go test -v prints the figures and what is wrong most often.
package agents
