package repeatlog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/repeatlog"
)

// diary notes what was logged, and when after the beginning.
type diary struct {
	log   *slog.Logger
	lines *strings.Builder
	began time.Time
}

func newDiary() diary {
	began, b := time.Now(), &strings.Builder{}
	replace := func(_ []string, a slog.Attr) slog.Attr {
		switch {
		case a.Value.Kind() == slog.KindTime:
			return slog.Duration(a.Key, a.Value.Time().Sub(began))
		case a.Key == slog.LevelKey:
			return slog.Attr{}
		}
		return a
	}
	return diary{slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: replace})), b, began}
}

// round is one turn of a loop that fails or does not.
func (d diary) round(ctx context.Context, c *repeatlog.Condition, fails bool) {
	if fails {
		c.Log(ctx, time.Now(), d.log, slog.LevelError, "full", nil)
	} else {
		c.LogRecovery(ctx, time.Now(), d.log, "over")
	}
}

// A loop of 50 ms that fails for two and a half minutes, is well for a minute and a half,
// and fails once more.
func TestWhatLastsIsLoggedEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c repeatlog.Condition
		d := newDiary()
		for range 150 * 20 {
			d.round(t.Context(), &c, true)
			time.Sleep(50 * time.Millisecond)
		}
		for range 90 * 20 {
			d.round(t.Context(), &c, false)
			time.Sleep(50 * time.Millisecond)
		}
		d.round(t.Context(), &c, true)
		want := "time=0s msg=full\n" +
			"time=1m0s msg=full times=1201 since=0s\n" +
			"time=2m0s msg=full times=2401 since=0s\n" +
			"time=3m29.95s msg=over times=3000 since=0s\n" +
			"time=4m0s msg=full\n"
		if diff := cmp.Diff(want, d.lines.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// What comes and goes is one condition: a line a minute, and one at the end.
func TestWhatComesAndGoesIsOneCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c repeatlog.Condition
		d := newDiary()
		for i := range 125 {
			d.round(t.Context(), &c, i%2 == 0)
			time.Sleep(time.Second)
		}
		for range 100 {
			d.round(t.Context(), &c, false)
			time.Sleep(time.Second)
		}
		want := "time=0s msg=full\n" +
			"time=1m0s msg=full times=31 since=0s\n" +
			"time=2m0s msg=full times=61 since=0s\n" +
			fmt.Sprintf("time=3m4s msg=over times=%d since=0s\n", 63)
		if diff := cmp.Diff(want, d.lines.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A line has the attributes of its caller, and whether there is one is reported.
func TestLinesHaveTheirAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, silent repeatlog.Condition
		d := newDiary()
		disk := slog.String("disk", "a")
		for _, logged := range []bool{true, false, true} {
			if got := c.Log(t.Context(), time.Now(), d.log, slog.LevelWarn, "full", errors.New("no space"), disk); got != logged {
				t.Errorf("after %s: logged %v", time.Since(d.began), got)
			}
			if silent.Log(t.Context(), time.Now(), d.log, slog.LevelDebug, "full", nil) {
				t.Error("a line of a level that is not logged")
			}
			time.Sleep(40 * time.Second)
		}
		for _, ended := range []bool{false, true, false} {
			if got := c.LogRecovery(t.Context(), time.Now(), d.log, "over", disk); got != ended {
				t.Errorf("after %s: ended %v", time.Since(d.began), got)
			}
			time.Sleep(40 * time.Second)
		}
		if !silent.LogRecovery(t.Context(), time.Now(), d.log, "") {
			t.Error("a condition without lines does not end")
		}
		want := "time=0s msg=full disk=a err=\"no space\"\n" +
			"time=1m20s msg=full disk=a err=\"no space\" times=3 since=0s\n" +
			"time=2m40s msg=over disk=a times=3 since=0s\n"
		if diff := cmp.Diff(want, d.lines.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
