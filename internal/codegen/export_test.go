package codegen

import "curt/internal/link"

// ApplyIn and InvertIn are the permutation on [0, size), for spaces small enough
// to be tried whole.
func (p *Permutation) ApplyIn(size, v uint64) uint64  { return p.forward(newSpace(size, 0), v) }
func (p *Permutation) InvertIn(size, v uint64) uint64 { return p.backward(newSpace(size, 0), v) }

func Encode62(length int, v uint64) link.Code { return encode62(length, v) }
func Decode62(s string) (uint64, bool)        { return decode62(s) }
