package script

import (
	"context"
	"net"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// Check reads an answer from text and checks one expectation of it.
func Check(want, text string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}()
	c, err := curttest.Dial(context.Background(), l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	a, err := c.Read("GET")
	if err != nil {
		return err
	}
	_, err = check(want, a, Vars{}, time.Now())
	return err
}

// RunAt is Run against whatever listens at addr.
func RunAt(t *testing.T, s Script, addr string) { Run(t, s, &curttest.Server{Addr: addr}) }
