// Package backup copies a data folder while a server works on it, and puts such a copy
// in the place of a data folder.
//
// A backup is a folder:
//
//	curt.db clicks.db     single files, without write-ahead logs
//	clicks/               the segments of the click log
//	admin.key             if the data folder has one
//	manifest.json         when, by which curt, of which schemas, which files
//	SHA256SUMS            of all of these, for sha256sum -c; its last line is the manifest's
//
// search.db is not part of it: it is filled from the links. Neither are the indexes of
// the click log, nor the keys of visitor tags: those are to be destroyed after their day,
// and would live on in every backup (sqlite.Seal). Visitors of the day of a restore may
// count twice for it.
//
// # One moment
//
// Everything in a backup is as it was at one moment, some milliseconds wide, although
// the copying takes minutes. [Take] fixes four things, in this order:
//
//  1. the segments of the click log, by opening them, so that trimming takes none away;
//  2. a read transaction of clicks.db, with it the roll-ups, and the position P in the
//     click log up to which they have counted, which the same transaction wrote;
//  3. the ends of the segments, among them those that came since: the log's end L;
//  4. a read transaction of curt.db.
//
// P ≤ L, because Fold counts only what is in the log, and no segment between P and L is
// missing: it was there at step 1 or came later. So whoever opens the copy counts the
// clicks from P to L and no other, each once, as after a crash. Step 4 is the last, so
// that every click is of a link that the backup has. A link that was acknowledged before
// the backup began is in it; one that is acknowledged while it runs is not.
//
// The copies are made from the read transactions, by SQLite's own backup, beside the
// writer of another process: nobody waits for a lock of ours. What it costs is room: no
// checkpoint starts the write-ahead log anew while a transaction is open (sqlite.Snapshot).
// The copy is synced every 16 MiB, so that the fsyncs of creates do not wait behind it.
//
// # Whole or nothing
//
// A backup is made in NAME.partial and gets its name when every byte of it is on the
// disk. A restore reads and checks all of it before it touches what is there: it copies
// into restore.partial inside the data folder, checks the copies' sums, the databases'
// structure and the checksum of every link, and skips the codes that may have been given
// away since. Then restore.partial becomes restore.ready, what was there moves to
// before-restore-TIME, and the new files move in. A kill leaves one of the two folders:
// no server starts on a folder that has one ([Unfinished]), and the next restore begins
// again, or moves in what was ready.
//
// Read take.go, restore.go and swap.go, and manifest.go for what a backup must say.
package backup
