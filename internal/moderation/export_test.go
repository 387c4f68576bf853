package moderation

// Encode returns what the hash of e is taken of.
func (e Entry) Encode(before Hash) []byte { return e.encode(nil, before) }
