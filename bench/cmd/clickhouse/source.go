package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cespare/xxhash/v2"

	"curt/bench/internal/traffic"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/useragent"
	"curt/internal/link"
)

// source makes clicks as three redirect processes would take them within a day: links are
// clicked by Zipf's law, one in three visitors comes again, places follow the address.
type source struct {
	random     *rand.Rand
	popularity *traffic.Zipf
	visitors   *traffic.Visitors
	agents     *useragent.Classifier
	known      []traffic.Visitor
	sequence   uint64
	begin      time.Time
}

func newSource(links int) *source {
	return &source{
		random: rand.New(rand.NewPCG(1, 2)), popularity: traffic.NewZipf(links), visitors: traffic.NewVisitors(),
		agents: useragent.NewClassifier(), begin: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1),
	}
}

// Seven characters of base 62, spread as codes are.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func code(rank int) link.Code {
	h := xxhash.Sum64String(fmt.Sprint("code", rank))
	var text [7]byte
	for i := range text {
		text[i] = digits[h%62]
		h /= 62
	}
	return link.Code(text[:])
}

func (s *source) visitor() traffic.Visitor {
	if len(s.known) > 1000 && s.random.IntN(3) == 0 {
		return s.known[s.random.IntN(len(s.known))]
	}
	v := s.visitors.Draw(s.random)
	if len(s.known) < 200_000 {
		s.known = append(s.known, v)
	}
	return v
}

// rows returns the next n of total clicks, in the order of time.
func (s *source) rows(n, total int) []clickdb.Row {
	rows := make([]clickdb.Row, n)
	for i := range rows {
		v, rank := s.visitor(), s.popularity.Rank(s.random)
		at := s.begin.Add(time.Duration(s.sequence) * 24 * time.Hour / time.Duration(total))
		who := xxhash.Sum64(append(v.Addr.AsSlice(), v.UserAgent...))
		place := xxhash.Sum64(v.Addr.AsSlice())
		// Countries and networks as skewed as those of the world.
		country, network := uint64(float64(place%1000)*float64(place%1000)/20_000), (place>>20)%1000*((place>>30)%1000)/250
		e := clicklog.Event{
			ID: clicks.EventID{Instance: 0x9e3779b97f4a7c15 * (s.sequence%3 + 1), Sequence: s.sequence / 3}, Time: at.UnixMilli(), Outcome: clicks.Redirected, Visitor: who,
			Country: [2]byte{'A' + byte(country/26%26), 'A' + byte(country%26)},
			City:    fmt.Append(nil, "City of ", country, "-", (place>>40)%64), Network: fmt.Append(nil, "AS", network, " Network"),
			UserAgent: v.UserAgent, Referrer: v.Referrer, Language: v.Language,
		}
		if place%7 == 0 {
			e.Query = fmt.Appendf(nil, "utm_source=mail&utm_medium=email&utm_campaign=week-%d", rank%53)
		}
		if s.random.IntN(50) == 0 {
			e.Flags = clicks.Head
		}
		rows[i] = clickdb.Row{
			ID: e.ID, Key: link.Key{Code: code(rank)}, Workspace: fmt.Sprintf("ws_%04d", rank%2000), Click: e.Click(s.agents),
		}
		s.sequence++
	}
	return rows
}
