package searchindex

// Segments returns how many segments the index has; nobody may write meanwhile.
func (s *Index) Segments() int { return len(s.state.segments) }
