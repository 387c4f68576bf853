package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"curt/internal/clienttls"
)

// DefaultTopic is the topic of a URL that names none.
const DefaultTopic = "curt.clicks"

// askBound is how long a question to the cluster may take: three brokers may be tried in turn.
const askBound = 3 * dialBound

// Config says where a topic is.
type Config struct {
	Brokers []string // host:port
	Topic   string
	TLS     *tls.Config    // nil = none
	Login   sasl.Mechanism // nil = none
}

// Parse reads kafka://[user:password@]host[:port][,host[:port]…]/[topic][?tls=true&sasl=plain]. The
// port is 9092 unless it is named, the topic [DefaultTopic]. sasl is plain, scram-sha-256 or
// scram-sha-512, the last with a user and no word of it. Three files in PEM mean TLS, too: ca is
// whom brokers are certified by, cert and key are who we are. An error says what to write and
// holds no password.
func Parse(raw string) (Config, error) { return parse(raw, DefaultTopic) }

// ParseQueued is Parse for links that are to be written, which have a default topic of their own.
func ParseQueued(raw string) (Config, error) { return parse(raw, Config{Topic: "curt"}.Queued().Topic) }

func parse(raw, topic string) (Config, error) {
	rest, ok := strings.CutPrefix(raw, "kafka://")
	if !ok {
		return Config{}, errors.New("expected kafka://host:port,host:port/topic")
	}
	// Several hosts with ports are no authority that net/url takes.
	authority, tail, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	u, err := url.Parse("kafka://" + authority[:at+1] + "brokers/" + tail)
	if err != nil {
		return Config{}, errors.New("expected kafka://user:password@host:port/topic, with % escapes in user and password")
	}
	c := Config{Topic: strings.Trim(u.Path, "/")}
	if c.Topic == "" {
		c.Topic = topic
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`).MatchString(c.Topic) || strings.Trim(c.Topic, ".") == "" {
		return Config{}, fmt.Errorf("topic %q: expected up to 249 letters, digits, dots, hyphens and underscores", c.Topic)
	}
	for host := range strings.SplitSeq(authority[at+1:], ",") {
		broker, err := withPort(host)
		if err != nil {
			return Config{}, err
		}
		c.Brokers = append(c.Brokers, broker)
	}
	return c, c.query(u)
}

func withPort(host string) (string, error) {
	u, err := url.Parse("kafka://" + host)
	if err != nil || u.Hostname() == "" || u.Host != host {
		return "", fmt.Errorf("broker %q: expected host or host:port", host)
	}
	if u.Port() == "" {
		return strings.TrimSuffix(host, ":") + ":9092", nil
	}
	return host, nil
}

// query reads what stands behind the question mark, and the login.
func (c *Config) query(u *url.URL) (err error) {
	q := u.Query()
	for name := range q {
		if name != "sasl" && !clienttls.IsOption(name) {
			return fmt.Errorf("unknown option %q; expected tls, ca, cert, key or sasl", name)
		}
	}
	if c.TLS, err = clienttls.Read(q); err != nil {
		return err //nolint:wrapcheck // names the option
	}
	password, _ := u.User.Password()
	name := u.User.Username()
	switch how := q.Get("sasl"); {
	case how == "" && name == "":
	case name == "":
		return errors.New("sasl: expected kafka://user:password@host")
	case how == "plain":
		c.Login = plain.Auth{User: name, Pass: password}.AsMechanism()
	case how == "scram-sha-256":
		c.Login = scram.Auth{User: name, Pass: password}.AsSha256Mechanism()
	case how == "" || how == "scram-sha-512":
		c.Login = scram.Auth{User: name, Pass: password}.AsSha512Mechanism()
	default:
		return fmt.Errorf("sasl %q: expected plain, scram-sha-256 or scram-sha-512", how)
	}
	return nil
}

// options are those of every client.
func (c Config) options() []kgo.Opt {
	o := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID("curt"), kgo.DialTimeout(dialBound),
		kgo.MetadataMinAge(250 * time.Millisecond), kgo.RetryTimeout(askBound),
	}
	if c.TLS != nil {
		o = append(o, kgo.DialTLSConfig(c.TLS))
	}
	if c.Login != nil {
		o = append(o, kgo.SASL(c.Login))
	}
	return o
}
