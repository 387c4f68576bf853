package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/backup"
	"curt/internal/config"
	"curt/internal/server"
)

// dataFolder is embedded by the commands that work on the data folder itself.
type dataFolder struct {
	Data string `default:"./data" env:"CURT_DATA" type:"path" help:"Data folder of the server."`
}

// ownLinks is embedded by the commands that put links into a data folder.
type ownLinks struct {
	Links string `default:"sqlite" env:"CURT_LINKS" hidden:"" help:"Link store of the servers; only sqlite is in the folder."`
}

// takes returns why no links may be put into a folder: its servers have them elsewhere, or
// those with these settings would, who do not start on a folder with links of its own. The
// second is a [*config.Error].
func (o ownLinks) takes(folder string) error {
	if err := server.Elsewhere(folder); err != nil {
		return err
	}
	if o.Links == "" || o.Links == config.SQLite {
		return nil
	}
	return &config.Error{
		Setting: "CURT_LINKS", Value: config.Redact(o.Links),
		Want: "links are in a database, as CURT_LINKS says, and no server would start on a folder with its own; curt import without --data takes them there, and without CURT_LINKS the folder is for a server of its own",
	}
}

type backupCmd struct {
	dataFolder

	To string `arg:"" type:"path" help:"Folder to make; there must be none."`
}

// Run makes a backup and says what is in it.
func (c *backupCmd) Run(ctx context.Context, t terminal) error {
	if err := server.Elsewhere(c.Data); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := server.Whole(ctx, c.Data); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	bar := newStages(t)
	m, err := backup.Take(ctx, backup.TakeConfig{Data: c.Data, To: c.To, Version: version, Told: bar.told})
	bar.progress.clear()
	if errors.Is(err, backup.ErrRows) {
		return fmt.Errorf("backup: %s is a copy that restore will refuse: %w; %s", plain(c.To), err, takeOut(c.Data))
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_, err = fmt.Fprintf(t.out, "backed up %s to %s: %s\n%s", plain(c.Data), plain(c.To), contents(m), withoutAccounts(ctx, c.Data))
	return err
}

// withoutAccounts says what a backup does not have.
func withoutAccounts(ctx context.Context, folder string) string {
	if apart, err := server.AccountsElsewhere(ctx, folder); err != nil || !apart {
		return "" // a backup of links that cannot be read is told of elsewhere
	}
	return "keys, shares and decisions are in the database that CURT_ACCOUNTS names: back it up by PostgreSQL's own means, " +
		"and after a restore of one of both let curt journal rebuild give links what the journal says\n"
}

// takeOut says how to get the links that are whole.
func takeOut(folder string) string {
	return "restore an older backup, or take the other links out with curt export --data=" + folder
}

func contents(m backup.Manifest) string {
	return fmt.Sprintf("%s in %d files, %d of them click log, as of %s", sizeText(m.Bytes()), len(m.Files), m.Segments(), m.Taken.Format(time.RFC3339))
}

// sizeText shows a size for people.
func sizeText(n int64) string {
	const units = "kMGT"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1000, 0
	for ; f >= 1000 && unit < len(units)-1; unit++ {
		f /= 1000
	}
	return fmt.Sprintf("%.1f %cB", f, units[unit])
}

// stages shows how far each stage of a long work is.
type stages struct{ progress *progress }

func newStages(t terminal) stages { return stages{newProgress(t, 0)} }

func (s stages) told(what string, done, total int64) {
	s.progress.total = total
	if done > 0 {
		what += ", " + sizeText(done)
	}
	s.progress.show(time.Now(), done, what)
}

type restoreCmd struct {
	dataFolder
	ownLinks

	From  string `arg:"" type:"path" help:"Folder of the backup."`
	Force bool   `help:"Put what is in the data folder aside; else it must be empty."`
	Check bool   `help:"Read the backup, say whether it is whole, and do nothing."`
}

// Run restores a backup, and says what that means for what was done since.
func (c *restoreCmd) Run(ctx context.Context, t terminal) error {
	bar := newStages(t)
	defer bar.progress.clear()
	if c.Check {
		m, err := backup.Verify(ctx, c.From, bar.told)
		bar.progress.clear()
		if err != nil {
			return c.refused(err)
		}
		_, err = fmt.Fprintf(t.out, "%s is whole: %s\n", plain(c.From), contents(m))
		return err
	}
	r, err := c.restore(ctx, bar)
	bar.progress.clear()
	switch {
	case errors.Is(err, backup.ErrNotEmpty):
		return fmt.Errorf("restore: %w; --force puts it aside", err)
	case err != nil:
		return c.refused(err)
	}
	return c.report(t, r)
}

func (c *restoreCmd) refused(err error) error {
	if errors.Is(err, backup.ErrRows) {
		return fmt.Errorf("restore: %w; %s", err, takeOut(c.From))
	}
	return fmt.Errorf("restore: %w", err)
}

// restore keeps servers away meanwhile. It makes no data folder for what is no backup.
func (c *restoreCmd) restore(ctx context.Context, bar stages) (r backup.Restored, err error) {
	wanted := backup.RestoreConfig{From: c.From, Data: c.Data, Force: c.Force, Now: time.Now(), Told: bar.told}
	if err := c.takes(c.Data); err != nil {
		return r, err
	}
	if _, err := wanted.Check(); err != nil {
		return r, err
	}
	if err := backup.Prepare(c.Data); err != nil {
		return r, err
	}
	lock, err := server.LockFolder(c.Data)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return backup.Restore(ctx, wanted)
}

func (c *restoreCmd) report(t terminal, r backup.Restored) error {
	m := r.Manifest
	text := fmt.Sprintf("restored %s from %s: %d links, %s\n", plain(c.Data), plain(c.From), r.Links, contents(m))
	if r.Finished {
		text = fmt.Sprintf("finished the restore of %s that was interrupted: %s\n", plain(c.Data), contents(m))
	}
	text += "what was done after " + m.Taken.Format(time.RFC3339) + " is undone: links made since are gone, " +
		"and what was deleted, disabled or revoked since is back\n" +
		"codes that may have been given away since are skipped; aliases that were are free\n"
	if r.Aside != "" {
		text += "what was there is in " + plain(r.Aside) + "\n"
	}
	_, err := fmt.Fprint(t.out, text)
	return err
}
