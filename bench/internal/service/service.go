// Package service runs a server of its own for a measurement, through scripts/services.
package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Service is a running server.
type Service struct {
	PID  int
	Addr string // host:port

	name string
	cmd  *exec.Cmd
	hold io.Closer // the script's input: it stops the server when that ends
}

// Start starts what the script calls name, in the way that it calls how, with its data in a
// new folder under temp, which goes with it. The caller stops it.
func Start(ctx context.Context, script, temp, name, how string) (s *Service, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start %s: %w", name, err)
		}
	}()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	s = &Service{name: name, Addr: l.Addr().String()}
	_, port, _ := net.SplitHostPort(s.Addr) // it is what Listen made
	if err := l.Close(); err != nil {
		return nil, err
	}
	dir := filepath.Join(temp, "curtbench-"+name+"-"+port)
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), script, name, dir, port, how) //nolint:gosec // our own script
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.hold = in
	line, err := bufio.NewReader(out).ReadString('\n')
	number, ready := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err == nil && !ready {
		err = fmt.Errorf("scripts/services said %q", line)
	}
	if err == nil {
		s.PID, err = strconv.Atoi(number)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the server and removes its data.
func (s *Service) Stop() error {
	if err := errors.Join(s.hold.Close(), s.cmd.Wait()); err != nil {
		return fmt.Errorf("stop %s: %w", s.name, err)
	}
	return nil
}
