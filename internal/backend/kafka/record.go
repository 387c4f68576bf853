package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/useragent"
)

// The numbers of api/clicks.proto, for good.
const (
	recordClick   protowire.Number = 1
	recordPromise protowire.Number = 2

	clickInstance  protowire.Number = 1
	clickSequence  protowire.Number = 2
	clickTime      protowire.Number = 3
	clickOutcome   protowire.Number = 4
	clickHead      protowire.Number = 5
	clickPrefetch  protowire.Number = 6
	clickQR        protowire.Number = 7
	clickWarned    protowire.Number = 8
	clickVisitor   protowire.Number = 9
	clickDomain    protowire.Number = 10
	clickCode      protowire.Number = 11
	clickCountry   protowire.Number = 12
	clickCity      protowire.Number = 13
	clickNetwork   protowire.Number = 14
	clickUserAgent protowire.Number = 15
	clickReferrer  protowire.Number = 16
	clickLanguage  protowire.Number = 17
	clickQuery     protowire.Number = 18
	clickDevice    protowire.Number = 19
	clickBrowser   protowire.Number = 20
	clickOS        protowire.Number = 21
	clickBotReason protowire.Number = 22
	clickBotName   protowire.Number = 23

	promiseInstance  protowire.Number = 1
	promiseWatermark protowire.Number = 2
)

// InstanceMark says that all clicks of an instance before a time were written.
type InstanceMark struct {
	Instance  uint64
	Watermark int64 // Unix milliseconds; clicks.Ended = the instance makes no more
}

// errRecord is of bytes that are no Record, or that say nothing that this version knows.
var errRecord = errors.New("not a click record of curt")

// appendClick appends a Record with a click. The code of a request for no link is left out:
// it may be anything that strangers type.
func appendClick(b []byte, e *clicklog.Event) []byte {
	b = protowire.AppendTag(b, recordClick, protowire.BytesType)
	// The length comes first and is known last. Nearly always it takes two bytes.
	at := len(b)
	b = appendClickFields(append(b, 0, 0), e)
	size := uint64(len(b) - at - 2)
	if protowire.SizeVarint(size) != 2 {
		return protowire.AppendBytes(b[:at], slices.Clone(b[at+2:]))
	}
	protowire.AppendVarint(b[:at], size)
	return b
}

func appendClickFields(b []byte, e *clicklog.Event) []byte {
	b = appendFixed(b, clickInstance, e.ID.Instance)
	b = appendVarint(b, clickSequence, e.ID.Sequence)
	b = appendVarint(b, clickTime, uint64(e.Time))
	b = appendVarint(b, clickOutcome, uint64(e.Outcome))
	for _, f := range flags() {
		if e.Flags&f.flag != 0 {
			b = appendVarint(b, f.number, 1)
		}
	}
	b = appendFixed(b, clickVisitor, e.Visitor)
	if e.Outcome != clicks.Orphan {
		domain, code := clicklog.SplitKey(e.Key)
		b = appendText(appendText(b, clickDomain, domain), clickCode, code)
	}
	if e.Country != [2]byte{} {
		b = appendText(b, clickCountry, e.Country[:])
	}
	b = appendText(appendText(b, clickCity, e.City), clickNetwork, e.Network)
	b = appendBytes(appendBytes(b, clickUserAgent, e.UserAgent), clickReferrer, e.Referrer)
	b = appendBytes(appendBytes(b, clickLanguage, e.Language), clickQuery, e.Query)
	if !e.Agent.Parsed() {
		return b
	}
	b = appendName(appendName(b, clickDevice, e.Agent.Device()), clickBrowser, e.Agent.Browser())
	b = appendName(appendName(b, clickOS, e.Agent.OS()), clickBotReason, string(e.Agent.Reason()))
	return appendText(b, clickBotName, e.BotName)
}

type flagField struct {
	number protowire.Number
	flag   clicks.Flags
}

func flags() [4]flagField {
	return [...]flagField{
		{clickHead, clicks.Head}, {clickPrefetch, clicks.Prefetch}, {clickQR, clicks.ViaQR}, {clickWarned, clicks.Warned},
	}
}

// promiseRecord returns a Record with a promise.
func promiseRecord(p InstanceMark) []byte {
	m := appendFixed(nil, promiseInstance, p.Instance)
	m = appendVarint(m, promiseWatermark, uint64(p.Watermark))
	return protowire.AppendBytes(protowire.AppendTag(nil, recordPromise, protowire.BytesType), m)
}

func appendFixed(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), v)
}

func appendVarint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func appendBytes(b []byte, n protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// appendName appends a name of ours.
func appendName(b []byte, n protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
}

// appendText appends a string, which readers refuse when it is not UTF-8.
func appendText(b []byte, n protowire.Number, v []byte) []byte {
	if !utf8.Valid(v) {
		v = []byte(strings.ToValidUTF8(string(v), "\uFFFD"))
	}
	return appendBytes(b, n, v)
}

// ReadRecord reads a Record: a click into e, whose slices are of b but for the key, or a
// promise, which is returned. Whatever the bytes are, it ends with a result or an error.
func ReadRecord(b []byte, e *clicklog.Event) (p *InstanceMark, err error) {
	known := false
	err = fields(b, func(n protowire.Number, v value) error {
		switch n {
		case recordClick:
			known, p = true, nil
			return readClick(v.bytes, e)
		case recordPromise:
			known, p = true, new(InstanceMark)
			return readPromise(v.bytes, p)
		default: // of a version to come
		}
		return nil
	})
	if err == nil && !known {
		err = errRecord
	}
	return p, err
}

func readClick(b []byte, e *clicklog.Event) error {
	*e = clicklog.Event{Key: e.Key[:0]}
	var domain, code []byte
	var who agentFields
	err := fields(b, func(n protowire.Number, v value) error {
		switch n {
		case clickInstance:
			e.ID.Instance = v.number
		case clickSequence:
			e.ID.Sequence = v.number
		case clickTime:
			e.Time = int64(v.number)
		case clickOutcome:
			if v.number == 0 || v.number > uint64(clicks.Orphan) {
				return fmt.Errorf("%w: outcome %d", errRecord, v.number)
			}
			e.Outcome = clicks.Outcome(v.number)
		case clickVisitor:
			e.Visitor = v.number
		case clickDomain:
			domain = v.bytes
		case clickCode:
			code = v.bytes
		case clickCountry:
			copy(e.Country[:], v.bytes)
		case clickCity:
			e.City = v.bytes
		case clickNetwork:
			e.Network = v.bytes
		case clickUserAgent:
			e.UserAgent = v.bytes
		case clickReferrer:
			e.Referrer = v.bytes
		case clickLanguage:
			e.Language = v.bytes
		case clickQuery:
			e.Query = v.bytes
		case clickBotName:
			e.BotName = v.bytes
		default: // a part of the agent, a flag, or of a version to come
			who.take(n, v)
		}
		for _, f := range flags() {
			if n == f.number && v.number != 0 {
				e.Flags |= f.flag
			}
		}
		return nil
	})
	e.Key = clicklog.AppendKey(e.Key, string(domain), string(code))
	e.Agent = who.agent()
	if err == nil && (e.ID.Instance == 0 || e.Outcome == 0) {
		err = fmt.Errorf("%w: a click without instance or outcome", errRecord)
	}
	return err
}

// agentFields are the names of an Agent. They are of few kinds, which a reader meets again and
// again: strings of the names are made by whoever compares them.
type agentFields struct{ device, browser, os, reason []byte }

func (a *agentFields) take(n protowire.Number, v value) {
	switch n {
	case clickDevice:
		a.device = v.bytes
	case clickBrowser:
		a.browser = v.bytes
	case clickOS:
		a.os = v.bytes
	case clickBotReason:
		a.reason = v.bytes
	default: // no part of it
	}
}

// agent is that of the names; not Known where there are none.
func (a *agentFields) agent() useragent.Agent {
	if len(a.device) == 0 {
		return useragent.Agent{}
	}
	return useragent.NewAgent(string(a.device), string(a.browser), string(a.os), clicks.BotReason(a.reason))
}

func readPromise(b []byte, p *InstanceMark) error {
	err := fields(b, func(n protowire.Number, v value) error {
		switch n {
		case promiseInstance:
			p.Instance = v.number
		case promiseWatermark:
			p.Watermark = int64(v.number)
		default: // of a version to come
		}
		return nil
	})
	if err == nil && p.Instance == 0 {
		err = fmt.Errorf("%w: a watermark without instance", errRecord)
	}
	return err
}

// value is that of a field: bytes, or a number.
type value struct {
	number uint64
	bytes  []byte
}

// fields calls f with each field of a message. A field of a kind that this version does not
// write is passed over.
func fields(b []byte, f func(protowire.Number, value) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errRecord, protowire.ParseError(n))
		}
		b = b[n:]
		var v value
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
			number = 0 // no field of ours
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", errRecord, protowire.ParseError(n))
		}
		b = b[n:]
		if err := f(number, v); err != nil {
			return err
		}
	}
	return nil
}
