// Package clicklogtest has logs, blocks and clicks for tests of what reads or writes the click log.
package clicklogtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/useragent"
)

// CreateFile creates a segment's file as a log does by itself.
func CreateFile(path string) (clicklog.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// OnFullDisk creates segments on a disk with room for writes of so many bytes, which may take no Truncate.
func OnFullDisk(room *atomic.Int64, noTruncates bool) func(path string) (clicklog.File, error) {
	return func(path string) (clicklog.File, error) {
		f, err := CreateFile(path)
		return fullDisk{f, room, noTruncates}, err
	}
}

// OnShrinkingDisk creates segments on a disk with room for so many bytes in all.
func OnShrinkingDisk(room *atomic.Int64) func(path string) (clicklog.File, error) {
	return func(path string) (clicklog.File, error) {
		f, err := CreateFile(path)
		return shrinking{f, room}, err
	}
}

// fullDisk is a segment file on a disk that runs full in the middle of a write.
type fullDisk struct {
	clicklog.File
	room        *atomic.Int64
	noTruncates bool
}

func (f fullDisk) WriteAt(b []byte, at int64) (int, error) {
	if room := f.room.Load(); int64(len(b)) > room {
		n, _ := f.File.WriteAt(b[:room], at)
		return n, &os.PathError{Op: "write", Err: syscall.ENOSPC}
	}
	return f.File.WriteAt(b, at)
}

func (f fullDisk) Truncate(size int64) error {
	if f.noTruncates {
		return syscall.EIO
	}
	return f.File.Truncate(size)
}

// shrinking has room for so many bytes in all.
type shrinking struct {
	clicklog.File
	room *atomic.Int64
}

func (f shrinking) WriteAt(b []byte, at int64) (int, error) {
	n, err := fullDisk{f.File, f.room, false}.WriteAt(b, at)
	f.room.Add(-int64(n))
	return n, err
}

// SealOne returns a block of one event.
func SealOne(instance, sequence uint64, c *clicks.Raw) []byte {
	return SealMarked(instance, sequence, c, time.UnixMilli(0))
}

// SealMarked is SealOne of an instance that gave a watermark.
func SealMarked(instance, sequence uint64, c *clicks.Raw, watermark time.Time) []byte {
	var b clicklog.Builder
	b.Reset(clicks.EventID{Instance: instance, Sequence: sequence})
	b.Add(c, useragent.Result{}, 1, clicks.Location{})
	return b.Seal(watermark.UnixMilli(), 0)
}

// SealMany returns a block of events, whose visitors are their sequences + 1.
func SealMany(sequence uint64, raws []clicks.Raw) []byte {
	var b clicklog.Builder
	b.Reset(clicks.EventID{Instance: 1, Sequence: sequence})
	for i := range raws {
		b.Add(&raws[i], useragent.Result{}, sequence+uint64(i)+1, clicks.Location{})
	}
	return b.Seal(0, 0)
}

// SealFirst returns blocks of one event each as releases before format 2 wrote them.
func SealFirst(sequence uint64, raws []clicks.Raw) (all []byte) {
	for i := range raws {
		b := SealMany(sequence+uint64(i), raws[i:i+1])
		b = b[:len(b)-useragent.AgentSize-1] // format 2 added an Agent and a name
		b[7] = '1'
		binary.LittleEndian.PutUint32(b[12:], uint32(len(b)-72))
		binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], crc32.MakeTable(crc32.Castagnoli)))
		all = append(all, b...)
	}
	return all
}

// SomeDay is a time in March 2026.
func SomeDay() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) }

// Open opens a log, in a folder of its own if none is given, and closes it with the test.
func Open(t *testing.T, c clicklog.Config) *clicklog.Log {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	log, err := clicklog.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Log(err)
		}
	})
	return log
}

// Event is an Event that outlives its block.
type Event struct {
	ID        clicks.EventID
	Time      int64
	Outcome   clicks.Outcome
	Flags     clicks.Flags
	Visitor   uint64
	Key       []byte
	UserAgent string
	Referrer  string
	Language  string
	Query     string
}

// Keep returns a copy of an event that outlives its block.
func Keep(e *clicklog.Event) Event {
	return Event{
		e.ID, e.Time, e.Outcome, e.Flags, e.Visitor, bytes.Clone(e.Key),
		string(e.UserAgent), string(e.Referrer), string(e.Language), string(e.Query),
	}
}

// ReadOn reads until the end of the log or an error.
func ReadOn(r *clicklog.Reader) (events []Event, err error) {
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		err = b.Events(func(e *clicklog.Event) error { events = append(events, Keep(e)); return nil })
		if err != nil {
			return events, err
		}
	}
}

// ReadAll returns all events of a log.
func ReadAll(t *testing.T, log *clicklog.Log) []Event {
	t.Helper()
	r := log.Read(clicklog.Position{})
	defer r.Close()
	events, err := ReadOn(r)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// AppendOne appends a block of one event of instance 7.
func AppendOne(t *testing.T, log *clicklog.Log, sequence uint64, now time.Time) clicklog.Position {
	t.Helper()
	p, err := log.Append(SealOne(7, sequence, UsualClick()), now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// SegmentFiles returns the paths of a folder's segments, oldest first.
func SegmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.clicks"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Sequences returns the sequences of events.
func Sequences(events []Event) (s []uint64) {
	for _, e := range events {
		s = append(s, e.ID.Sequence)
	}
	return s
}

// AppendFile appends bytes to a file.
func AppendFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// Three returns three blocks of one event each.
func Three() [][]byte {
	return [][]byte{SealOne(7, 0, UsualClick()), SealOne(7, 1, UsualClick()), SealOne(7, 2, UsualClick())}
}

// Events returns all events of a log, which outlive their blocks.
func Events(t *testing.T, log *clicklog.Log) (all []clicklog.Event) {
	t.Helper()
	r := log.Read(clicklog.Position{})
	defer r.Close()
	for {
		b, err := r.Next()
		if err != nil {
			return all
		}
		err = b.Events(func(e *clicklog.Event) error {
			mine := *e
			for _, f := range []*[]byte{&mine.Key, &mine.BotName, &mine.UserAgent, &mine.Referrer, &mine.Language, &mine.Query, &mine.City, &mine.Network} {
				*f = bytes.Clone(*f)
			}
			all = append(all, mine)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// OddClicks are made of what browsers, programs and strangers send.
func OddClicks(random *rand.Rand, n int) (raws []clicks.Raw) {
	pick := func(list ...string) []byte { return []byte(list[random.IntN(len(list))]) }
	for i := range n {
		c := *UsualClick()
		c.Time += int64(i)
		c.Outcome = clicks.Outcome(1 + random.IntN(3))
		c.Flags = clicks.Flags(random.IntN(16))
		c.UserAgent = pick("", "curl/8.5.0", "Googlebot/2.1 (+http://www.google.com/bot.html)", "Mozilla/5.0 (compatible; thing)", "a\xffb/1",
			"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36",
			"facebookexternalhit/1.1", "Mozilla/5.0 (iPad; CPU OS 16_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.5 Mobile/15E148 Safari/604.1", strings.Repeat("long ", 60))
		c.Referrer = pick("", "https://www.News.example/a?b#c", "http://t.co", "HTTPS://X.example:80/", "android-app://com.example.app/", "ftp://x/", "https://", "://", "https://user@[2001:db8::1]:8/x",
			"https://www.www.example/", "https://a.example.", "https://a..", "https://a:b:80/", "https://www.", "https://www.www.", "https://a..:1:2", "http://b\\c", "https://\xff/")
		c.Language = pick("", "de-CH,de;q=0.9", "EN", "gsw-CH", "x", "*", "zz-\xff", "abcd")
		c.Query = pick("", "qr=1", "utm_source=x", "utm_source=%28a%29&utm_source=b", "utm_term=+a+", "utm_content=%C2%85%E2%80%AEx%26y%3D", "utm_campaign=%zz", "utm_medium="+strings.Repeat("a%20", 120),
			"UTM_SOURCE=x", "x=utm_source=y", "utm_source="+strings.Repeat("%C3%A4", 80), "utm_source=%E2%80%8F&utm_medium=ok")
		raws = append(raws, c)
	}
	return raws
}

// RandomClick makes a click of one of 30 links around a midnight.
func RandomClick(r *rand.Rand) *clicks.Raw {
	agents := []string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
		"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "curl/8.5.0",
	}
	outcomes := []clicks.Outcome{clicks.Redirected, clicks.Redirected, clicks.Redirected, clicks.FellBack, clicks.Refused, clicks.Orphan}
	flags := []clicks.Flags{0, 0, 0, clicks.ViaQR, clicks.Warned, clicks.Warned | clicks.ViaQR, clicks.Head, clicks.Prefetch}
	at := time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(7200)-3600) * time.Second)
	return &clicks.Raw{
		Time: at.UnixMilli(), Code: fmt.Appendf(nil, "c%d", r.IntN(30)), Outcome: outcomes[r.IntN(len(outcomes))],
		Flags: flags[r.IntN(len(flags))], Addr: netip.AddrFrom4([4]byte{203, 0, 113, byte(r.IntN(200))}),
		UserAgent: []byte(agents[r.IntN(len(agents))]), Referrer: fmt.Appendf(nil, "https://r%d.example/", r.IntN(5)),
	}
}

// UsualClick returns a click as a browser sends it.
func UsualClick() *clicks.Raw {
	return &clicks.Raw{
		Time: 1_800_000_000_000, Code: []byte("abc1234"), Outcome: clicks.Redirected,
		Addr:      netip.MustParseAddr("203.0.113.9"),
		UserAgent: []byte("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"),
		Referrer:  []byte("https://news.example/"), Language: []byte("en-US,en;q=0.9"), Query: []byte("utm_source=x"),
	}
}
