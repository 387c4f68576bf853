package connlimit

// States counts the connections of a listener: silent ones, those with a head under way,
// idle ones, and of those with a request whoever waits for the client and who is worked for.
func (l *Listener) States() (fresh, heading, idle, owing, working int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.open {
		switch g.state.Load() >> stateShift {
		case guestFresh:
			fresh++
		case guestHeading:
			heading++
		case guestIdle:
			idle++
		default:
			if g.candidate().Kind == Working {
				working++
			} else {
				owing++
			}
		}
	}
	return
}
