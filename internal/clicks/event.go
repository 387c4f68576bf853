package clicks

import (
	"encoding/binary"
	"errors"
	"time"
)

// EventID names one click for good: the process that captured it, and the how
// manyeth it was there. Whoever meets the same ID twice counts it once.
type EventID struct {
	Instance uint64 // random per start of the process
	Sequence uint64 // 0, 1, 2 … in the order of the log
}

// Event is one click as the log keeps it. The byte slices belong to the block and
// are valid until the next block is read.
type Event struct {
	ID      EventID
	Time    int64 // Unix milliseconds
	Outcome Outcome
	Flags   Flags

	// Visitor is a keyed hash of address and user agent that means nothing once
	// the day's key is destroyed; 0 = could not be made.
	Visitor uint64

	Country [2]byte // ISO 3166-1 alpha-2; zero = unknown
	City    []byte
	Network []byte

	Key []byte // domain and code in the log's own spelling: see DecodeKey

	// What the request's headers said, as Detail has it: by default the user agent is
	// empty, the referrer has a scheme and a host, the language is one, and the query has
	// UTM fields and nothing else. Each reads as what was sent does.
	Agent     Agent  // of the user agent; not Known in blocks of format 1, which have that itself
	BotName   []byte // how a bot calls itself
	UserAgent []byte
	Referrer  []byte
	Language  []byte
	Query     []byte
}

// When returns the event's time.
func (e *Event) When() time.Time { return time.UnixMilli(e.Time).UTC() }

// Preview reports whether the request only looked: HEAD or prefetch.
func (e *Event) Preview() bool { return e.Flags&(Head|Prefetch) != 0 }

var errRecord = errors.New("record does not fit its block")

// appendEvent appends e in the log's format 2: outcome, flags, time relative to the
// block's (zigzag), visitor (8 bytes), country (2 bytes), then domain, code, user
// agent, referrer, language, query, city and network, each after its length, then the Agent
// (4 bytes) and a bot's name. The lengths are uvarints. Fields are only ever added at the
// end, under a new block version: format 1 ends before the Agent.
func appendEvent(b []byte, e *Raw, who told, base int64, visitor uint64, p Place) []byte {
	b = append(b, byte(e.Outcome), byte(e.Flags))
	b = binary.AppendVarint(b, e.Time-base)
	b = binary.LittleEndian.AppendUint64(b, visitor)
	b = append(b, p.Country[0], p.Country[1])
	b = appendBytes(appendBytes(b, e.Domain), e.Code)
	b = appendBytes(appendBytes(b, e.UserAgent), e.Referrer)
	b = appendBytes(appendBytes(b, e.Language), e.Query)
	b = appendBytes(b, p.City[:min(len(p.City), maxPlace)])
	b = appendBytes(b, p.Network[:min(len(p.Network), maxPlace)])
	return appendBytes(who.append(b), who.name)
}

func appendBytes[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// nextEvent reads the first record of b into e and returns the rest. Damage is an
// error, whatever the bytes are.
func nextEvent(b []byte, version byte, base int64, e *Event) (rest []byte, err error) {
	if len(b) < 2 {
		return nil, errRecord
	}
	e.Outcome, e.Flags = Outcome(b[0]), Flags(b[1])
	delta, n := binary.Varint(b[2:])
	if n <= 0 || len(b) < 2+n+10 {
		return nil, errRecord
	}
	e.Time = base + delta
	b = b[2+n:]
	e.Visitor = binary.LittleEndian.Uint64(b)
	e.Country = [2]byte(b[8:10])
	b = b[10:]
	key := b
	for range 2 { // domain, code
		if _, b, err = nextBytes(b); err != nil {
			return nil, err
		}
	}
	e.Key = key[:len(key)-len(b)]
	for _, field := range [...]*[]byte{&e.UserAgent, &e.Referrer, &e.Language, &e.Query, &e.City, &e.Network} {
		if *field, b, err = nextBytes(b); err != nil {
			return nil, err
		}
	}
	e.Agent, e.BotName = Agent{}, nil
	if version == version1 {
		return b, nil
	}
	if len(b) < agentSize {
		return nil, errRecord
	}
	e.Agent = readAgent(b)
	e.BotName, b, err = nextBytes(b[agentSize:])
	return b, err
}

func nextBytes(b []byte) (field, rest []byte, err error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, errRecord
	}
	end := n + int(size)
	return b[n:end:end], b[end:], nil
}

// DecodeKey returns domain and code of an Event's Key, which nextEvent has
// checked; bytes that are no such key give empty strings.
func DecodeKey(key []byte) (domain, code string) {
	d, c := SplitKey(key)
	return string(d), string(c)
}

// SplitKey is DecodeKey without copies: the slices are the key's.
func SplitKey(key []byte) (domain, code []byte) {
	domain, rest, err := nextBytes(key)
	if err != nil {
		return nil, nil
	}
	code, _, err = nextBytes(rest)
	if err != nil {
		return nil, nil
	}
	return domain, code
}

// AppendKey appends the log's spelling of a key, by which Events can be compared.
func AppendKey(b []byte, domain, code string) []byte {
	return appendBytes(appendBytes(b, domain), code)
}
