package clickdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"curt/internal/analytics"
)

// UnavailableError says which server cannot be queried, and why. It has no credentials.
type UnavailableError struct {
	Address string // as of [DB.Address]
	Reason  string // as of [DB.Reason]
}

func (e *UnavailableError) Error() string { return "ClickHouse is unavailable: " + e.PublicMessage() }

// PublicMessage is what an operator may read.
func (e *UnavailableError) PublicMessage() string { return e.Address + ": " + e.Reason }

// Unwrap implements errors.Is.
func (*UnavailableError) Unwrap() error { return analytics.ErrUnavailable }

// Address is host:port/database.
func (d *DB) Address() string { return d.address }

// AddressOf returns that of a URL; "" = nobody can connect to it.
func AddressOf(url string) string {
	options, err := clickhouse.ParseDSN(url)
	if err != nil {
		return ""
	}
	return addressOf(options)
}

func addressOf(o *clickhouse.Options) string {
	return strings.TrimSuffix(strings.Join(o.Addr, ",")+"/"+o.Auth.Database, "/")
}

// wrongUser is the code of an exception that names the user, and asks whether the password is right.
const wrongUser = 516

// Reason is an error of the server or the connection in one line, without address and user.
func (d *DB) Reason(err error) string {
	reason := err.Error()
	if e, ok := errors.AsType[*clickhouse.Exception](err); ok {
		if reason = strings.TrimPrefix(e.Message, d.user+": "); e.Code == wrongUser {
			reason = "user or password is wrong"
		}
	} else if e, ok := errors.AsType[*net.OpError](err); ok {
		reason = e.Err.Error()
	}
	reason = strings.TrimPrefix(reason, analytics.ErrUnavailable.Error()+": ")
	return strings.Join(strings.Fields(reason), " ")
}

// Unreachable reports whether an error of [Probe] says that no server answered: the settings may be right.
func Unreachable(err error) bool {
	return err != nil && !errors.Is(err, ErrUnfit) && !errors.As(err, new(*clickhouse.Exception))
}

// found is how a server was found; nil = it answered.
type found struct{ err error }

// Found notes whether the server answered.
func (d *DB) Found(err error) {
	if err != nil {
		err = &UnavailableError{d.address, d.Reason(err)}
	}
	d.found.Store(&found{err})
}

// Healthy returns nil while the server answers, as [DB.Found] was told last. It does no I/O.
func (d *DB) Healthy() error {
	if f := d.found.Load(); f != nil {
		return f.err
	}
	return &UnavailableError{d.address, "not connected yet"}
}

// refusal is why a question is not asked: who knows that the server is away need not wait
// until it does not answer.
func (d *DB) refusal() error {
	if f := d.found.Load(); f != nil {
		return f.err
	}
	return nil
}

// Check reads an address without asking anybody. The error is ErrUnfit.
func Check(url string) error {
	d, err := New(Config{URL: url})
	if err != nil {
		return err
	}
	return d.Close()
}

// Probed is what [Probe] found.
type Probed struct {
	Version string
	Text    string  // for people
	Replica Replica // the zero value = it is the only one, or has no tables

	Migrated bool // it has the tables of this release
}

// Probe connects once and says what the server is, and whether it may have its position among several. It
// changes nothing there. An error that a change of the settings helps with is not [Unreachable].
func Probe(ctx context.Context, c Config) (p Probed, err error) {
	d, err := New(c)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Fit(ctx); err != nil {
		return p, err
	}
	if err := d.Conn.QueryRow(ctx, "SELECT version()").Scan(&p.Version); err != nil {
		return p, fmt.Errorf("query failed: %w", err)
	}
	p.Text = "ClickHouse " + p.Version
	id, fed, err := d.identity(ctx)
	if err == nil {
		err = d.ordered(id, fed)
	}
	switch {
	case err != nil:
		return p, err
	case !fed:
		p.Text += ", tables missing: curt migrate or the first start of a worker creates them"
		return p, nil
	}
	p.Text += ", tables present"
	if p.Migrated, err = migrated(ctx, d); err != nil {
		return p, err
	}
	if p.Replica, err = d.Replica(ctx); err == nil && p.Replica.Filling {
		p.Text += fmt.Sprintf("; a replica that is not queried yet, filled with %d days so far", p.Replica.Days)
	}
	return p, err
}
