// Command frontend answers redirects with an HTTP library in place of curt's lane, and records
// each click as the lane does, so that bench/cmd/lane can compare them. It does less than curt:
// destinations come from a map that never changes, nothing expires, and there is no TLS, no API,
// no eviction under pressure and no counting of unknown codes. What it costs is therefore a lower
// bound for the library.
//
//	frontend -library fasthttp|gnet -map FILE -listen 127.0.0.1:8080 -clicks DIR
//
// FILE has a line `/code "destination";` for each link, as nginx's map has.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	library := flag.String("library", "", "fasthttp or gnet")
	links := flag.String("map", "", "the links")
	listen := flag.String("listen", "127.0.0.1:0", "address")
	folder := flag.String("clicks", "", "folder of the click log")
	flag.Parse()
	if err := run(ctx, *library, *links, *listen, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "bench/cmd/frontend:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to undo
	}
}

func run(ctx context.Context, library, links, listen, folder string) (err error) {
	table, err := readMap(links)
	if err != nil {
		return err
	}
	log, err := clicklog.Open(clicklog.Config{Dir: folder})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	ring := capture.NewRing(capture.RingConfig{})
	detail, err := capture.ParseDetail("")
	if err != nil {
		return err
	}
	capture := capture.New(capture.Config{Ring: ring, Log: log, Keys: dayKey{}, Detail: detail, Logger: slog.New(slog.DiscardHandler)})
	captured := make(chan error, 1)
	within, end := context.WithCancel(ctx)
	go func() { captured <- capture.Run(within) }()
	defer func() { end(); err = errors.Join(err, <-captured) }()
	f := &frontend{table: table, ring: ring}
	switch library {
	case "fasthttp":
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		return f.fasthttp(ctx, listener)
	case "gnet":
		return f.gnet(ctx, listen)
	}
	return fmt.Errorf("-library is %q: want fasthttp or gnet", library)
}

// frontend is what both libraries answer from.
type frontend struct {
	table map[string]prepared // by code
	ring  *capture.Ring
}

// prepared is an answer but for its date, as the lane prepares it.
type prepared struct{ destination, head, tail string }

// request is what a click needs of a request. Its slices are valid during record.
type request struct {
	code, query, userAgent, referrer, language []byte
	addr                                       netip.Addr
}

func (f *frontend) record(r *request) {
	f.ring.Record(&clicks.Raw{
		Time: time.Now().UnixMilli(), Code: r.code, Outcome: clicks.Redirected, Addr: r.addr,
		UserAgent: r.userAgent, Referrer: r.referrer, Language: r.language, Query: r.query,
	})
}

func readMap(name string) (map[string]prepared, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the links: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	table := map[string]prepared{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		path, quoted, found := strings.Cut(strings.TrimSuffix(lines.Text(), ";"), " ")
		destination, err := strconv.Unquote(quoted)
		if !found || err != nil {
			return nil, fmt.Errorf("read the links: %q is no line of a map", lines.Text())
		}
		table[path[1:]] = prepared{
			destination: destination,
			head:        "HTTP/1.1 302 Found\r\nCache-Control: private, max-age=0\r\nLocation: " + destination + "\r\nX-Robots-Tag: noindex\r\nDate: ",
			tail:        "\r\nContent-Length: 0\r\n\r\n",
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the links: %w", err)
	}
	return table, nil
}

// listening announces the address as curt does.
func listening(ctx context.Context, addr string) {
	slog.New(slog.NewJSONHandler(os.Stderr, nil)).InfoContext(ctx, "listening", slog.String("addr", addr))
}

// dayKey tags visitors with one key.
type dayKey struct{}

func (dayKey) DayKey(context.Context, time.Time) ([16]byte, error) { return [16]byte{1}, nil }
