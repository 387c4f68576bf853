package zookeeper

// Session returns the id of the session; 0 = there was none yet.
func (l *Leases) Session() int64 { return l.conn.Load().SessionID() }
