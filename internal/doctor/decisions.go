package doctor

import (
	"context"
	"encoding/hex"
	"errors"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
)

// verdicts compares links with the journal of moderation.
type verdicts struct {
	replay  *moderator.Replay
	pending bool // the server has not come to the end of the journal yet

	milder, graver uint64 // links that are not as the journal says
	oneMilder      link.Key
	oneGraver      link.Key
}

// tampered is the advice about a journal that is not what the server wrote.
const tampered = "find out who else can write to curt.db; " + restore + ", which undoes later decisions"

// decisions verifies the journal, as far as there is time, and returns what compares links
// with it; nil where that would say nothing.
func (c *linkCheck) decisions(ctx context.Context) *verdicts {
	there, err := c.links.HasJournal()
	if err != nil {
		c.fail("decisions", restore, "journal unreadable: %v", err)
	}
	if !there {
		return nil // of an earlier release
	}
	if apart, err := c.links.AccountsApart(); err == nil && apart {
		c.ok("decisions", "not checked: accounts are in the database of CURT_ACCOUNTS, which has its own tools")
		return nil
	}
	v := &verdicts{replay: moderator.NewReplay()}
	newest, err := c.links.LastSequence()
	if err != nil {
		c.fail("decisions", restore, "journal unreadable: %v", err)
		return nil
	}
	within, end := c.bounded(ctx)
	defer end()
	last, err := moderation.Verify(within, c.links, func(entry *moderation.Entry) {
		if entry.Sequence%4096 == 0 {
			c.tell("decisions", int64(entry.Sequence), int64(newest))
		}
		v.replay.Take(entry)
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, errLate):
		c.warn("decisions", toTheEnd, "hash chain valid up to entry %d of %d; the rest was not read within %s, so links are not compared",
			last.Sequence, newest, c.Within)
		return nil
	case errors.Is(err, moderation.ErrBroken):
		c.fail("decisions", tampered,
			"%v: changed outside the server; valid up to entry %d", err, last.Sequence)
		return nil
	case err != nil:
		c.fail("decisions", restore, "journal unreadable: %v", err)
		return nil
	case last.Sequence == 0:
		c.ok("decisions", "no decisions yet")
	default:
		c.ok("decisions", "hash chain of %d entries valid, %d active bans; the last entry, of %s, has hash %s",
			last.Sequence, v.replay.Bans(), last.At.Format("2006-01-02 15:04"), hex.EncodeToString(last.Hash[:]))
	}
	p, err := c.links.Progress(ctx)
	switch {
	case err != nil:
		c.fail("decisions", restore, "progress of the journal unreadable: %v", err)
		return nil
	case p.Applied > last.Sequence:
		c.fail("decisions", tampered, "applied entries %d to %d are missing: the journal was truncated", last.Sequence+1, p.Applied)
	}
	v.pending = p.Applied < last.Sequence || len(p.Walks) > 0
	return v
}

// see compares one link.
func (v *verdicts) see(l *link.Link) {
	if v == nil || l.Status == link.Deleted {
		return
	}
	switch want := v.replay.EffectiveSafety(l); {
	case l.Safety < want:
		v.milder, v.oneMilder = v.milder+1, l.Key
	case l.Safety > want:
		v.graver, v.oneGraver = v.graver+1, l.Key
	}
}

// compared says how links and journal agree; part is whether not all links were read.
func (c *linkCheck) compared(part bool) {
	v := c.decided
	const rebuild = "run curt journal rebuild to restore the safety of every link from the journal"
	switch {
	case v == nil:
	case v.milder+v.graver > 0 && v.pending && c.held:
		c.warn("decisions", "run doctor again when curt ban list shows done everywhere",
			"%d links do not match the journal yet, among them %s; the server is updating them", v.milder+v.graver, v.one())
	case v.milder+v.graver > 0 && v.pending:
		c.warn("decisions", "start the server, which updates them",
			"%d links do not match the journal yet, among them %s", v.milder+v.graver, v.one())
	case v.milder > 0 && v.graver == 0:
		c.fail("decisions", rebuild, "%d links redirect although the journal blocks or flags them, among them %s", v.milder, v.oneMilder)
	case v.graver > 0: // first: a rebuild would let them through
		c.fail("decisions", tampered, "%d links are blocked or flagged without a journal entry, among them %s: entries are missing, or the links were changed", v.graver, v.oneGraver)
	case part:
		c.ok("decisions", "all links read match the journal")
	default:
		c.ok("decisions", "all links match the journal")
	}
}

func (v *verdicts) one() link.Key {
	if v.milder > 0 {
		return v.oneMilder
	}
	return v.oneGraver
}
