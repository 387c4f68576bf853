package testkit

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Kafka is a cluster of Apache Kafka 4 brokers, each of which is a controller, too.
type Kafka struct{ Brokers []*Broker }

// Broker is one of them.
type Broker struct {
	Address string // host:port
	*service
}

// StartKafka starts a cluster of one broker, or of three, which ends with the test.
func StartKafka(t testing.TB, brokers int) *Kafka {
	t.Helper()
	ports, controllers := make([]string, brokers), make([]string, brokers)
	for i := range brokers {
		ports[i], controllers[i] = FreePort(t), FreePort(t)
	}
	k := &Kafka{Brokers: make([]*Broker, brokers)}
	begun := make([]func() *service, brokers)
	for i, port := range ports { // none is ready before two are there
		begun[i] = launch(t, "kafka", filepath.Join(os.TempDir(), "curt-kafka-"+rand.Text()), port,
			fmt.Sprintf("%d:%s", i+1, strings.Join(controllers, ",")))
	}
	for i, port := range ports {
		k.Brokers[i] = &Broker{net.JoinHostPort("127.0.0.1", port), begun[i]()}
	}
	return k
}

// URL returns what a client connects to a topic with.
func (k *Kafka) URL(topic string) string {
	all := make([]string, len(k.Brokers))
	for i, b := range k.Brokers {
		all[i] = b.Address
	}
	return "kafka://" + strings.Join(all, ",") + "/" + topic
}
