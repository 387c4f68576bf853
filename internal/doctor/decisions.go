package doctor

import (
	"context"
	"encoding/hex"
	"errors"

	"curt/internal/backend/sqlite"
	"curt/internal/link"
	"curt/internal/moderation"
)

// verdicts compares links with the journal of moderation.
type verdicts struct {
	replay  *moderation.Replay
	pending bool // the server has not come to the end of the journal yet

	milder, graver uint64 // links that are not as the journal says
	oneMilder      link.Key
	oneGraver      link.Key
}

// tampered is the advice about a journal that is not what the server wrote.
const tampered = "find out who can write curt.db beside the server; " + restore + ", which takes back what was decided since"

// decisions verifies the journal, as far as there is time, and returns what compares links
// with it; nil where that would say nothing.
func (e *examination) decisions(ctx context.Context, s *sqlite.Snapshot) *verdicts {
	there, err := s.HasJournal()
	if err != nil {
		e.fail("decisions", restore, "the journal cannot be read: %v", err)
	}
	if !there {
		return nil // of an earlier release
	}
	if apart, err := s.AccountsApart(); err == nil && apart {
		e.ok("decisions", "not examined: accounts are in a database of their own, as CURT_ACCOUNTS says, which has means of its own")
		return nil
	}
	v := &verdicts{replay: moderation.NewReplay()}
	newest, err := s.LastSequence()
	if err != nil {
		e.fail("decisions", restore, "the journal cannot be read: %v", err)
		return nil
	}
	within, end := e.bounded(ctx)
	defer end()
	last, err := moderation.Verify(within, s, func(entry *moderation.Entry) {
		if entry.Sequence%4096 == 0 {
			e.tell("decisions", int64(entry.Sequence), int64(newest))
		}
		v.replay.Take(entry)
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, errLate):
		e.warn("decisions", toTheEnd, "the chain holds up to entry %d of %d; the rest was not read within %s, and links are not compared with it",
			last.Sequence, newest, e.Within)
		return nil
	case errors.Is(err, moderation.ErrBroken):
		e.fail("decisions", tampered,
			"%v: somebody changed it behind the server's back; it holds up to entry %d", err, last.Sequence)
		return nil
	case err != nil:
		e.fail("decisions", restore, "the journal cannot be read: %v", err)
		return nil
	case last.Sequence == 0:
		e.ok("decisions", "nothing was decided yet")
	default:
		e.ok("decisions", "the chain of %d entries holds, %d bans stand; the last, of %s, has hash %s",
			last.Sequence, v.replay.Bans(), last.At.Format("2006-01-02 15:04"), hex.EncodeToString(last.Hash[:]))
	}
	p, err := s.Progress(ctx)
	switch {
	case err != nil:
		e.fail("decisions", restore, "how much of the journal took effect cannot be read: %v", err)
		return nil
	case p.Applied > last.Sequence:
		e.fail("decisions", tampered, "entries %d to %d took effect and are gone: somebody cut the journal off", last.Sequence+1, p.Applied)
	}
	v.pending = p.Applied < last.Sequence || len(p.Walks) > 0
	return v
}

// see compares one link.
func (v *verdicts) see(l *link.Link) {
	if v == nil || l.Status == link.Deleted {
		return
	}
	switch want := v.replay.Holds(l); {
	case l.Safety < want:
		v.milder, v.oneMilder = v.milder+1, l.Key
	case l.Safety > want:
		v.graver, v.oneGraver = v.graver+1, l.Key
	}
}

// compared says how links and journal agree; part is whether not all links were read.
func (e *examination) compared(v *verdicts, part bool) {
	const rebuild = "curt journal rebuild lets the server give every link what the journal says"
	switch {
	case v == nil:
	case v.milder+v.graver > 0 && v.pending && e.held:
		e.warn("decisions", "examine again when curt ban list says done everywhere",
			"%d links are not yet as the journal says, among them %s; the server is about to see to it", v.milder+v.graver, v.one())
	case v.milder+v.graver > 0 && v.pending:
		e.warn("decisions", "start the server, which sees to it",
			"%d links are not yet as the journal says, among them %s", v.milder+v.graver, v.one())
	case v.milder > 0 && v.graver == 0:
		e.fail("decisions", rebuild, "%d links are let through that the journal stops or warns of, among them %s", v.milder, v.oneMilder)
	case v.graver > 0: // first: a rebuild would let them through
		e.fail("decisions", tampered, "%d links are stopped or warned of, and the journal does not say why, among them %s: entries are gone, or somebody changed the links", v.graver, v.oneGraver)
	case part:
		e.ok("decisions", "every link that was read is as the journal says")
	default:
		e.ok("decisions", "every link is as the journal says")
	}
}

func (v *verdicts) one() link.Key {
	if v.milder > 0 {
		return v.oneMilder
	}
	return v.oneGraver
}
