package events_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/testkit"
)

// The addresses that clicks come from: of connections, which on this machine can be of its
// loopback network alone, and as a proxy tells them. Three of each, as four bytes may be
// somewhere by chance.
func canaries() (direct, told []netip.Addr) {
	for _, text := range []string{"127.201.173.226", "127.149.214.131", "127.247.188.190"} {
		direct = append(direct, netip.MustParseAddr(text))
	}
	for _, text := range []string{
		"201.173.226.149", "214.131.247.188", "190.241.139.206",
		"2a0d:8f3e:91c7:b5d2:e6a9:83f1:9bce:d74a", "2602:f8b1:c3e9:97ad:8ed6:f2b4:a1c8:e593", "2c0f:fe9d:b8a7:c6f5:94e3:d2b1:8fa0:97cd",
	} {
		told = append(told, netip.MustParseAddr(text))
	}
	return direct, told
}

// control is what must be found: addresses that a link's query says, as text and as bytes that
// are letters.
func control() (four, sixteen netip.Addr) {
	return netip.AddrFrom4([4]byte([]byte("Zq7x"))), netip.AddrFrom16([16]byte([]byte("Kw5vCanaryOfIPv6")))
}

// shapes are what an address may look like on a disk.
func shapes(a netip.Addr) (texts [][]byte, raw [][]byte) {
	for _, text := range []string{a.String(), a.StringExpanded()} {
		for _, text := range []string{text, url.QueryEscape(text)} { // as it is, and in a query
			texts = append(texts, []byte(text), []byte(strings.ToUpper(text)))
		}
	}
	b := a.AsSlice()
	back := slices.Clone(b)
	slices.Reverse(back)
	return texts, [][]byte{b, back}
}

func contains(text []byte, any [][]byte) bool {
	return slices.ContainsFunc(any, func(s []byte) bool { return bytes.Contains(text, s) })
}

// met is where an address was found, by what was searched.
type met struct{ text, raw map[netip.Addr]bool }

// search looks for all addresses.
func (m met) search(text []byte) {
	direct, told := canaries()
	four, sixteen := control()
	for _, a := range append(append(direct, told...), four, sixteen) {
		texts, raw := shapes(a)
		m.text[a] = m.text[a] || contains(text, texts)
		m.raw[a] = m.raw[a] || contains(text, raw)
	}
}

// leaked returns which addresses are there: four bytes only where those of all three are.
func (m met) leaked() (all []string) {
	direct, told := canaries()
	for _, three := range [][]netip.Addr{direct, told[:3], told[3:]} {
		found := 0
		for _, a := range three {
			if m.text[a] || a.Is6() && m.raw[a] {
				all = append(all, a.String())
			}
			if m.raw[a] {
				found++
			}
		}
		if found == len(three) {
			all = append(all, fmt.Sprintf("the bytes of %v", three))
		}
	}
	return all
}

// visitAs clicks on links from a connection of an address, told as another by a proxy.
func visitAs(t *testing.T, addr string, from netip.Addr, forwarded string, agent string, targets ...string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}, Timeout: time.Minute}
	c, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	answers := bufio.NewReader(c)
	for _, target := range targets {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", agent)
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		if err := r.Write(c); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(answers, r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
}

// TestWhatIsKept has clicks come from known addresses, through all that counts them, and looks
// at what is there then.
func TestWhatIsKept(t *testing.T) {
	testkit.Faults(t)
	p := build(t, 1, 0, 1)
	p.env = append(p.env, "CURT_TRUSTED_PROXIES=127.0.0.1/32")
	folder := t.TempDir()
	p.site(t, folder)
	site := p.sites[folder]
	direct, told := canaries()
	const person = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
	proxy := netip.MustParseAddr("127.0.0.1")
	for range 20 {
		for _, a := range direct {
			visitAs(t, site.Addr, a, "", person, "/"+p.codes[0], "/nobody", "/"+p.codes[1]+"?utm_source=a")
		}
		for _, a := range told {
			visitAs(t, site.Addr, proxy, a.String(), person, "/"+p.codes[2], "/nobody")
		}
	}
	four, sixteen := control()
	said := fmt.Sprintf("?utm_source=%s&utm_medium=%s&utm_campaign=%s&utm_term=%s", four, sixteen.StringExpanded(), four.AsSlice(), sixteen.AsSlice())
	visitAs(t, site.Addr, proxy, "192.0.2.1", person, "/"+p.codes[3]+said)
	p.settle(t)
	t.Run("no address is on any disk", func(t *testing.T) { p.searchAll(t, folder) })
	t.Run("commands", p.commands)
}

// searchAll looks for the addresses in every file, and in what Kafka and ClickHouse keep
// compressed.
func (p *plant) searchAll(t *testing.T, folder string) {
	four, sixteen := control()
	all := map[string]met{}
	look := func(where string, text []byte) {
		if _, there := all[where]; !there {
			all[where] = met{map[netip.Addr]bool{}, map[netip.Addr]bool{}}
		}
		all[where].search(text)
	}
	for name, dir := range map[string]string{
		"the server's folder": folder, "the worker's folder": one(p.works), "Kafka's files": p.kafka.Brokers[0].Dir,
		"ClickHouse's files": p.clickhouse.Dir, "PostgreSQL's files": p.links.Dir,
	} {
		files, size := 0, 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // files come and go
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			files, size = files+1, size+len(text)
			look(name, text)
			return nil
		})
		if err != nil || files == 0 {
			t.Errorf("%s: %d files, %v", name, files, err)
		}
		t.Logf("%s: %d files, %d bytes", name, files, size)
	}
	for data, s := range p.works {
		look("the worker's log", []byte(s.Log()+data))
	}
	look("the server's log", []byte(p.sites[folder].Log()))
	p.readKafka(t, func(text []byte) { look("Kafka's records", text) })
	p.readTables(t, func(text []byte) { look("ClickHouse's rows", text) })
	for where, m := range all {
		if leaks := m.leaked(); len(leaks) > 0 {
			t.Errorf("%s: %v", where, leaks)
		}
	}
	for _, where := range []string{"the server's folder", "Kafka's records", "ClickHouse's rows"} {
		for _, a := range []netip.Addr{four, sixteen} {
			if m := all[where]; !m.text[a] || !m.raw[a] {
				t.Errorf("the control: %v is not found in %s, as text %v, as bytes %v", a, where, m.text[a], m.raw[a])
			}
		}
	}
}

// one returns a key.
func one[T any](m map[string]T) (key string) {
	for key = range m {
		break
	}
	return key
}

// readKafka reads all records of all topics.
func (p *plant) readKafka(t *testing.T, f func([]byte)) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka.Brokers[0].Address), kgo.ConsumeTopics("clicks", "clicks.dead", "__consumer_offsets"), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), "clicks", "clicks.dead", "__consumer_offsets")
	if err != nil || ends.Error() != nil {
		t.Fatal(err, ends.Error())
	}
	open := map[string]map[int32]int64{} // the partitions that have more, by topic
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			if open[o.Topic] == nil {
				open[o.Topic] = map[int32]int64{}
			}
			open[o.Topic][o.Partition] = o.Offset
		}
	})
	n := 0
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%v: not read to their ends: %v", err, open)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				if r.Offset+1 >= open[p.Topic][p.Partition] {
					delete(open[p.Topic], p.Partition)
				}
			}
			if len(open[p.Topic]) == 0 {
				delete(open, p.Topic)
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			f(r.Key)
			f(r.Value)
			for _, h := range r.Headers {
				f(h.Value)
			}
		})
	}
	if n < 100 {
		t.Errorf("Kafka has %d records", n)
	}
}

// readTables reads all rows of all tables, those of the server's own logs too.
func (p *plant) readTables(t *testing.T, f func([]byte)) {
	t.Helper()
	tables := p.clickhouse.Exec(t, "SELECT concat(database, '.`', name, '`') FROM system.tables WHERE engine NOT LIKE '%View' AND (database = '"+p.database+"' OR database = 'system' AND name LIKE '%\\_log')")
	n := 0
	for table := range strings.Lines(tables) {
		n++
		f([]byte(p.clickhouse.Exec(t, "SELECT * FROM "+strings.TrimSpace(table)+" FORMAT RowBinary")))
	}
	if n < 6 {
		t.Errorf("ClickHouse has the tables\n%s", tables)
	}
}
