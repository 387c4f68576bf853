package codegen

import "curt/internal/link"

// ApplyIn and InvertIn are the permutation on [0, size), for spaces small enough
// to be tried whole.
func (p *Permutation) ApplyIn(size, v uint64) uint64  { return p.forward(newSpace(size, 0), v) }
func (p *Permutation) InvertIn(size, v uint64) uint64 { return p.backward(newSpace(size, 0), v) }

// WordLists returns the words of Words, separated by spaces: adjectives, nouns.
func WordLists() [2]string { return [2]string{adjectives, nouns} }

func Encode62(length int, v uint64) link.Code { return encode62(length, v) }
func Decode62(s string) (uint64, bool)        { return decode62(s) }

// EncodeSnowflake returns the code of an id; nil = plain.
func EncodeSnowflake(p *Permutation, id uint64) link.Code {
	return (&Snowflake{perm: p}).code(id)
}

// MachineCounter returns the name of the counter of a machine id.
func MachineCounter(machine int) string { return machineCounter(int64(machine)) }
