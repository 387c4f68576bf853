package handover

// Abandon lets go of the folder as the kernel does for a process that was killed.
func Abandon(m *Mover) { _ = m.lock.Close() }
