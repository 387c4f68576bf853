package movedata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/backup"
	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/datafolder"
)

// dataFolder is embedded by the commands that work on the data folder itself.
type dataFolder struct {
	Data string `default:"./data" env:"CURT_DATA" type:"path" help:"Data folder of the server."`
}

// ownLinks is embedded by the commands that put links into a data folder.
type ownLinks struct {
	Links string `default:"sqlite" env:"CURT_LINKS" hidden:"" help:"Link store of the server; only sqlite is in the folder."`
}

// accepts returns an error if no server would use links in a folder: its servers have their
// links in a database, or a server with these settings would, and refuses a folder with links.
// The second is a [*config.Error].
func (o ownLinks) accepts(folder string) error {
	if err := datafolder.Elsewhere(folder); err != nil {
		return err
	}
	if o.Links == "" || o.Links == config.SQLite {
		return nil
	}
	return &config.Error{
		Setting: "CURT_LINKS", Value: config.Redact(o.Links),
		Want: "CURT_LINKS is a database, and no server would start on a folder with links; use curt import without --data for that database, or unset CURT_LINKS for a separate server",
	}
}

// Backup is the command "curt backup".
type Backup struct {
	dataFolder

	To string `arg:"" type:"path" help:"Folder to create; it must not exist."`
}

// Run creates a backup and prints its contents.
func (c *Backup) Run(ctx context.Context, t cli.Terminal, version cli.Version) error {
	if err := datafolder.Elsewhere(c.Data); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := datafolder.Whole(ctx, c.Data); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	bar := newStages(t)
	m, err := backup.Take(ctx, backup.TakeConfig{Data: c.Data, To: c.To, Version: string(version), Progress: bar.show})
	bar.progress.Clear()
	if errors.Is(err, backup.ErrRows) {
		return fmt.Errorf("backup: %s is a copy that restore will refuse: %w; %s", cli.Plain(c.To), err, damagedAdvice(c.Data))
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_, err = fmt.Fprintf(t.Out, "backed up %s to %s: %s\n%s", cli.Plain(c.Data), cli.Plain(c.To), contents(m), withoutAccounts(ctx, c.Data))
	return err
}

// withoutAccounts is a hint if accounts are in another database than the backup.
func withoutAccounts(ctx context.Context, folder string) string {
	if apart, err := datafolder.AccountsElsewhere(ctx, folder); err != nil || !apart {
		return "" // an unreadable backup is reported elsewhere
	}
	return "keys, shares and decisions are in the database of CURT_ACCOUNTS: back it up with PostgreSQL tools, " +
		"and after restoring only one of the two run curt journal rebuild\n"
}

// damagedAdvice is the advice for a damaged folder.
func damagedAdvice(folder string) string {
	return "restore an older backup, or export the intact links with curt export --data=" + folder
}

func contents(m backup.Manifest) string {
	return fmt.Sprintf("%s in %d files, %d of them click log, as of %s", sizeText(m.Bytes()), len(m.Files), m.Segments(), m.Taken.Format(time.RFC3339))
}

// sizeText formats a size.
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

// stages shows the progress of each stage.
type stages struct{ progress *cli.Progress }

func newStages(t cli.Terminal) stages { return stages{cli.NewProgress(t, 0)} }

func (s stages) show(what string, done, total int64) {
	s.progress.Total = total
	if done > 0 {
		what += ", " + sizeText(done)
	}
	s.progress.Show(time.Now(), done, what)
}

// Restore is the command "curt restore".
type Restore struct {
	dataFolder
	ownLinks

	From  string `arg:"" type:"path" help:"Folder of the backup."`
	Force bool   `help:"Move the current contents of the data folder aside; otherwise it must be empty."`
	Check bool   `help:"Only verify the backup; change nothing."`
}

// Run restores a backup, and prints the consequences for later changes.
func (c *Restore) Run(ctx context.Context, t cli.Terminal) error {
	bar := newStages(t)
	defer bar.progress.Clear()
	if c.Check {
		m, err := backup.Verify(ctx, c.From, bar.show)
		bar.progress.Clear()
		if err != nil {
			return c.refused(err)
		}
		_, err = fmt.Fprintf(t.Out, "%s is complete: %s\n", cli.Plain(c.From), contents(m))
		return err
	}
	r, err := c.restore(ctx, bar)
	bar.progress.Clear()
	switch {
	case errors.Is(err, backup.ErrNotEmpty):
		return fmt.Errorf("restore: %w; --force moves it aside", err)
	case err != nil:
		return c.refused(err)
	}
	return c.report(t, r)
}

func (c *Restore) refused(err error) error {
	if errors.Is(err, backup.ErrRows) {
		return fmt.Errorf("restore: %w; %s", err, damagedAdvice(c.From))
	}
	return fmt.Errorf("restore: %w", err)
}

// restore holds the lock of the folder, which keeps servers from starting. It creates no data
// folder if the backup is invalid.
func (c *Restore) restore(ctx context.Context, bar stages) (r backup.Restored, err error) {
	wanted := backup.RestoreConfig{From: c.From, Data: c.Data, Force: c.Force, Now: time.Now(), Progress: bar.show}
	if err := c.accepts(c.Data); err != nil {
		return r, err
	}
	if _, err := wanted.Check(); err != nil {
		return r, err
	}
	if err := backup.Prepare(c.Data); err != nil {
		return r, err
	}
	lock, err := datafolder.Lock(c.Data)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return backup.Restore(ctx, wanted)
}

func (c *Restore) report(t cli.Terminal, r backup.Restored) error {
	m := r.Manifest
	text := fmt.Sprintf("restored %s from %s: %d links, %s\n", cli.Plain(c.Data), cli.Plain(c.From), r.Links, contents(m))
	if r.Finished {
		text = fmt.Sprintf("finished the restore of %s that was interrupted: %s\n", cli.Plain(c.Data), contents(m))
	}
	text += "what was done after " + m.Taken.Format(time.RFC3339) + " is undone: links created later are lost, " +
		"and later deletions, disablings and revocations are reverted\n" +
		"codes that may have been generated later are skipped; aliases created later are available again\n"
	if r.MovedTo != "" {
		text += "the previous contents are in " + cli.Plain(r.MovedTo) + "\n"
	}
	_, err := fmt.Fprint(t.Out, text)
	return err
}
