package clicklog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/headers"
	"curt/internal/clicks/useragent"
	"curt/internal/link"
)

// Event is one click as the log keeps it. The byte slices belong to the block and
// are valid until the next block is read.
type Event struct {
	ID      clicks.EventID
	Time    int64 // Unix milliseconds
	Outcome clicks.Outcome
	Flags   clicks.Flags

	// Visitor is a keyed hash of address and user agent that means nothing once
	// the day's key is destroyed; 0 = could not be made.
	Visitor uint64

	Country [2]byte // ISO 3166-1 alpha-2; zero = unknown
	City    []byte
	Network []byte

	Key []byte // domain and code in the log's own spelling: see LinkKey

	// What the request's headers said, as Detail has it: by default the user agent is
	// empty, the referrer has a scheme and a host, the language is one, and the query has
	// UTM fields and nothing else. Each reads as what was sent does.
	Agent     useragent.Agent // of the user agent; not Known in blocks of format 1, which have that itself
	BotName   []byte          // how a bot calls itself
	UserAgent []byte
	Referrer  []byte
	Language  []byte
	Query     []byte
}

// When returns the event's time.
func (e *Event) When() time.Time { return time.UnixMilli(e.Time).UTC() }

// Preview reports whether the request only looked: HEAD or prefetch.
func (e *Event) Preview() bool { return e.Flags&(clicks.Head|clicks.Prefetch) != 0 }

// maxPlace bounds city and network, which come from the operator's file, in bytes.
const maxPlace = 128

var errRecord = errors.New("record does not fit its block")

// appendEvent appends e in the log's format 2: outcome, flags, time relative to the
// block's (zigzag), visitor (8 bytes), country (2 bytes), then domain, code, user
// agent, referrer, language, query, city and network, each after its length, then the Agent
// (4 bytes) and a bot's name. The lengths are uvarints. Fields are only ever added at the
// end, under a new block version: format 1 ends before the Agent.
func appendEvent(b []byte, e *clicks.Raw, who useragent.Result, base int64, visitor uint64, p clicks.Location) []byte {
	b = append(b, byte(e.Outcome), byte(e.Flags))
	b = binary.AppendVarint(b, e.Time-base)
	b = binary.LittleEndian.AppendUint64(b, visitor)
	b = append(b, p.Country[0], p.Country[1])
	b = appendBytes(appendBytes(b, e.Domain), e.Code)
	b = appendBytes(appendBytes(b, e.UserAgent), e.Referrer)
	b = appendBytes(appendBytes(b, e.Language), e.Query)
	b = appendBytes(b, p.City[:min(len(p.City), maxPlace)])
	b = appendBytes(b, p.Network[:min(len(p.Network), maxPlace)])
	return appendBytes(who.Append(b), who.Name)
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
	e.Outcome, e.Flags = clicks.Outcome(b[0]), clicks.Flags(b[1])
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
	e.Agent, e.BotName = useragent.Agent{}, nil
	if version == version1 {
		return b, nil
	}
	if len(b) < useragent.AgentSize {
		return nil, errRecord
	}
	e.Agent = useragent.ReadAgent(b)
	e.BotName, b, err = nextBytes(b[useragent.AgentSize:])
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

// LinkKey returns the link of an Event's Key, which nextEvent has checked; bytes that are no
// such key give the zero Key.
func LinkKey(key []byte) link.Key {
	domain, code := SplitKey(key)
	return link.Key{Domain: link.Domain(domain), Code: link.Code(code)}
}

// SplitKey returns domain and code of an Event's Key, as parts of it.
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

// AppendLinkKey appends what LinkKey reads; nothing for the zero Key, which is the orphans.
func AppendLinkKey(b []byte, k link.Key) []byte {
	if k == (link.Key{}) {
		return b
	}
	return AppendKey(b, string(k.Domain), string(k.Code))
}

// Click returns what statistics know of the event. It copies what it keeps. b reads the user
// agents of blocks of format 1.
func (e *Event) Click(b *useragent.Classifier) clicks.Click {
	var host [256]byte
	who, name := e.Agent, clicks.Plain(string(e.BotName))
	if !who.Parsed() {
		found := b.Parse(e.UserAgent)
		who, name = found.Agent, found.Name
	}
	c := clicks.Click{
		Time: e.When(), Outcome: e.Outcome, Preview: e.Preview(),
		City: clicks.Plain(string(e.City)), Network: clicks.Plain(string(e.Network)),
		Device: who.Device(), Browser: who.Browser(), OS: who.OS(),
		Language: headers.LanguageName(headers.PrimaryLanguage(e.Language)), Trigger: clicks.TriggerLink,
		ReferrerHost: cmp.Or(string(headers.ReferrerHost(e.Referrer, host[:])), clicks.Direct),
		Bot:          who.Bot(), BotReason: who.Reason(), BotName: name, Visitor: e.Visitor,
	}
	if e.Country != [2]byte{} {
		c.Country = clicks.Plain(string(e.Country[:]))
	}
	switch {
	case e.Flags&clicks.Warned != 0:
		c.Trigger = clicks.TriggerWarning
	case e.Flags&clicks.ViaQR != 0:
		c.Trigger = clicks.TriggerQR
	}
	c.UTM, _ = headers.ParseUTM(e.Query)
	return c
}
