package clicks

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// What tests of this package need and nobody else.

type SegmentFile = segmentFile

const (
	MaxUserAgent = maxUserAgent
	MaxReferrer  = maxReferrer
	MaxLanguage  = maxLanguage
	MaxQuery     = maxQuery
	HeadSize     = headSize
)

func (c LogConfig) WithFiles(create func(path string) (SegmentFile, error)) LogConfig {
	c.create = create
	return c
}

func CreateSegment(path string) (SegmentFile, error) { return createSegment(path) }

func (l *Log) Trim(ctx context.Context, now time.Time) { l.trim(ctx, now) }

func (c *Capture) Drain(ctx context.Context) error { return c.drain(ctx) }

func (r *Ring) Wake() <-chan struct{} { return r.wake }

// Scan reads all blocks of a segment as the reader does.
func Scan(file io.ReaderAt, size int64, f func(*Block) error) error {
	s := segmentScanner{file: file, name: "segment", size: size}
	for {
		b, err := s.next()
		if err != nil {
			return err
		}
		if err := f(&b); err != nil {
			return err
		}
	}
}

// SealOne returns a block of one event.
func SealOne(instance, sequence uint64, c *Raw) []byte {
	b := appendEvent(make([]byte, headSize), c, told{}, c.Time, 1, Place{})
	sealBlock(b, blockHead{count: 1, instance: instance, first: sequence, base: c.Time, earliest: c.Time, latest: c.Time})
	return b
}

// SealMarked is SealOne of an instance that promised something.
func SealMarked(instance, sequence uint64, c *Raw, watermark time.Time) []byte {
	b := appendEvent(make([]byte, headSize), c, told{}, c.Time, 1, Place{})
	sealBlock(b, blockHead{count: 1, instance: instance, first: sequence, base: c.Time, earliest: c.Time, latest: c.Time, watermark: watermark.UnixMilli()})
	return b
}

func HostOf(s string) string { var b [256]byte; return string(referrerHost([]byte(s), b[:])) }

func LanguageOf(s string) string { return languageName(primaryLanguage([]byte(s))) }

func UTMOf(s string) [5]string { u, _ := readUTM([]byte(s)); return u }

// Agent returns what a user agent is taken for.
func AgentOf(ua string) (device, browser, os string, bot bool) {
	a := newAgents().parse([]byte(ua))
	return a.Device(), a.Browser(), a.OS(), a.Bot()
}

func SpiderPatterns() int { return len(spiderPatterns()) }

// SealMany returns a block of events.
func SealMany(sequence uint64, raws []Raw) []byte {
	h := blockHead{count: uint32(len(raws)), instance: 1, first: sequence, base: raws[0].Time, earliest: raws[0].Time, latest: raws[0].Time}
	b := make([]byte, headSize)
	for i := range raws {
		h.earliest, h.latest = min(h.earliest, raws[i].Time), max(h.latest, raws[i].Time)
		b = appendEvent(b, &raws[i], told{}, h.base, sequence+uint64(i)+1, Place{})
	}
	sealBlock(b, h)
	return b
}

// Tick does what Run does once a second.
func (h *History) Tick(ctx context.Context) {
	h.follow(ctx)
	h.store(ctx)
	for h.complete(ctx) {
	}
}

func (h *History) Follow(ctx context.Context) { h.follow(ctx) }

// SetMark has the log promise what a clock said that was ahead.
func (l *Log) SetMark(t time.Time) { l.setMark(t) }

// WallClock notices that the clock was set.
type WallClock = wallClock

// Set has the clock on the wall set by some time.
func (w *wallClock) Set(ctx context.Context, now time.Time, by time.Duration, log *slog.Logger) {
	w.compare(ctx, now, by, log)
}

// NotAhead is up to when counts are complete, as the clock says.
func NotAhead(complete, now time.Time) time.Time { return notAhead(complete, now) }

// SealFirst returns a block of events as releases before format 2 wrote it.
func SealFirst(sequence uint64, raws []Raw) []byte {
	h := blockHead{count: uint32(len(raws)), instance: 1, first: sequence, base: raws[0].Time, earliest: raws[0].Time, latest: raws[0].Time}
	b := make([]byte, headSize)
	for i := range raws {
		h.earliest, h.latest = min(h.earliest, raws[i].Time), max(h.latest, raws[i].Time)
		b = appendEvent(b, &raws[i], told{}, h.base, sequence+uint64(i)+1, Place{})
		b = b[:len(b)-agentSize-1] // which is what came with format 2: an Agent and no name
	}
	sealBlock(b, h)
	b[len(magic)] = version1 // the checksum begins behind it
	return b
}

// Names are the lists whose numbers are stored, and how many of each a reader knows.
func Names() (device, browser, os []string, known [3]int) {
	return deviceNames(), browserNames(), osNames(), [3]int{numDevices, numBrowsers, numSystems}
}

// Hurry is a reader of user agents that has some time for the bot list.
func Hurry(patience time.Duration) (parse func(ua string) Agent, begin func(), unlisted func() uint64) {
	a := newAgents()
	a.patience = patience
	return func(ua string) Agent { return a.parse([]byte(ua)).Agent }, a.begin, func() uint64 { return a.unlisted }
}

// Late has a tally note that less is written than is, as a kill between the two does.
func (t *Tally) Late(n uint64) { t.written(n) }
